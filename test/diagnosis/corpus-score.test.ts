import { expect, it } from 'vitest';
import { answerTo, readCorpus, readHealthy } from './corpus.ts';
import { score, scoreTable, sumsOf } from './scoring.ts';

it('prints the score over the corpus, held-back cases as sums alone', () => {
  const seen = score(readCorpus());
  const heldBack = score(readCorpus('held-back'));
  const healthy = readHealthy().map(([name, texts]) => ({ name, said: answerTo(texts) }));
  const alarms = healthy.filter(({ said }) => said.cause !== 'no-fault');
  process.stdout.write(
    `\n${scoreTable([
      ['seen', seen],
      ['held back', heldBack],
    ])}\n\nfalse alarms  ${alarms.length} in ${healthy.length} healthy jobs\n`,
  );
  for (const { name, said } of alarms)
    process.stdout.write(
      `  ${name}: ${said.cause} @${said.atFault} ${said.confidence}: ${said.finding?.quotes[0]?.text ?? said.finding?.title}\n`,
    );
  if (process.env['VERBOSE'] !== undefined)
    for (const { one, said, cause, family, node, noise } of seen)
      if (!cause || !family || !node || noise.length > 0)
        process.stdout.write(
          `  ${one.name}: ${one.cause} @${one.atFault}, said ${said.cause} ${said.family} @${said.atFault} ${said.confidence}${noise.length > 0 ? ' quotes noise' : ''}\n`,
        );
  const sums = sumsOf(seen);
  expect(sums.noise).toBe(0);
  expect(alarms).toEqual([]);
  expect(sums.cause / sums.cases).toBeGreaterThanOrEqual(0.95);
  expect(sums.node / sums.cases).toBeGreaterThanOrEqual(0.95);
});
