import { expect, it } from 'vitest';
import { diagnose, failed } from '../../src/diagnosis/diagnose.ts';
import { type Case, evidenceOf, nodeOf, readCases } from './cases.ts';

type Verdict = 'right' | 'wrong node' | 'wrong cause' | 'unknown';

it('names cause and node of most recorded failures, and prints how many', () => {
  const cases = readCases().filter((one) => one.cause !== 'no-fault');
  const verdicts = cases.map((one) => ({ one, ...judge(one) }));
  const count = (verdict: Verdict) => verdicts.filter((each) => each.verdict === verdict).length;
  const missed = verdicts.filter((each) => each.verdict !== 'right');
  process.stdout.write(
    `score: ${count('right')}/${cases.length} causes and nodes right, ${count('wrong node')} other node, ` +
      `${count('unknown')} unknown, ${count('wrong cause')} wrong\n`,
  );
  if (process.env['VERBOSE'] !== undefined) {
    for (const { one, verdict, said } of missed) {
      process.stdout.write(`  ${verdict}: ${one.name} is ${one.cause} @${one.atFault}, said ${said}\n`);
    }
  }
  expect(count('wrong cause') / cases.length).toBeLessThan(0.05);
});

function judge(one: Case): { readonly verdict: Verdict; readonly said: string } {
  const evidence = evidenceOf(one);
  const finding = diagnose(evidence, { final: true });
  const said = `${finding.cause} @${finding.node ?? 'none'}${failed(evidence) ? '' : ' (not failed)'}`;
  if (finding.cause === 'unknown') return { verdict: 'unknown', said };
  if (finding.cause !== one.cause) return { verdict: 'wrong cause', said };
  const right =
    one.atFault === 'both' ||
    finding.node === (['head', 'worker'].includes(one.atFault) ? nodeOf(one.atFault) : undefined);
  return { verdict: right ? 'right' : 'wrong node', said };
}
