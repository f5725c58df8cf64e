import { expect, it } from 'vitest';
import { readCorpus } from './corpus.ts';
import { score, scoreTable, sumsOf } from './scoring.ts';

it('prints the score over the corpus, held-back cases as sums alone', () => {
  const seen = score(readCorpus());
  const heldBack = score(readCorpus('held-back'));
  process.stdout.write(
    `\n${scoreTable([
      ['seen', seen],
      ['held back', heldBack],
    ])}\n`,
  );
  if (process.env['VERBOSE'] !== undefined)
    for (const { one, said, cause, family, node, noise } of seen)
      if (!cause || !family || !node || noise.length > 0)
        process.stdout.write(
          `  ${one.name}: ${one.cause} @${one.atFault}, said ${said.cause} ${said.family} @${said.atFault} ${said.confidence}${noise.length > 0 ? ' quotes noise' : ''}\n`,
        );
  expect(sumsOf(seen).noise).toBe(0);
});
