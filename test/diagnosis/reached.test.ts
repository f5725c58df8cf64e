import { describe, expect, it } from 'vitest';
import { answerOf } from '../../src/diagnosis/answer.ts';
import { evidenceOfTexts } from '../../src/diagnosis/offline.ts';
import { verdictOf } from '../../src/diagnosis/verdict.ts';
import type { DiagnosisAnswer } from '../../src/domain/report.ts';
import { answerTo, readHealthy } from './corpus.ts';

const HEALTHY = new Map(readHealthy());
const lines = (name: string, log: string, count: number): string =>
  `${String(HEALTHY.get(name)?.[log]).split('\n').slice(0, count).join('\n')}\n`;

function jsonOf(texts: Readonly<Record<string, string>>): DiagnosisAnswer {
  const evidence = evidenceOfTexts(
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)])),
  );
  return answerOf(verdictOf(evidence), evidence);
}

describe('logs that end in the middle of loading', () => {
  const head = lines('sglang-single', 'head', 40);

  it('are told as far as they go: stage, percent, line and time, and that nothing had failed', () => {
    const said = answerTo({ head });
    expect(said).toMatchObject({ cause: 'unknown', family: undefined, atFault: 'head' });
    expect(said.finding?.title).toBe(
      'The log of head ends while loading weights, at 85 %; nothing had failed by then',
    );
    expect(said.finding?.why).toBe(
      'No line tells of an error. head stood at weights, 85 %, in line 40 (2026-11-29 20:03:20).',
    );
    expect(said.finding?.advice.join(' ')).toMatch(/--follow.*no progress for 900 s while loading weights/);
    expect(said.finding?.quotes.map(({ line }) => line)).toEqual([40]);
  });

  it('are told by JSON as well', () => {
    expect(jsonOf({ head })).toMatchObject({
      cause: 'unknown',
      family: null,
      evidence: [{ log: 'head', line: 40 }],
      reached: [
        { log: 'head', stage: 'weights', percent: 85, line: 40, lastLine: 40, lastAt: '2026-11-29 20:03:20' },
      ],
    });
  });

  it('of a pair are told for each rank, by the hindmost', () => {
    const pair = { head: lines('vllm-pair', 'head', 12), worker: lines('vllm-pair', 'worker', 4) };
    const said = answerTo(pair);
    expect(said).toMatchObject({ cause: 'unknown', atFault: 'worker' });
    expect(said.finding?.title).toMatch(
      /^The logs end in the rendezvous, worker hindmost; nothing had failed/,
    );
    expect(said.finding?.why).toMatch(
      /head stood at weights, 50 %, in line 12.*; worker stood at rendezvous/,
    );
    expect(jsonOf(pair).reached).toMatchObject([
      { log: 'head', stage: 'weights', percent: 50 },
      { log: 'worker', stage: 'rendezvous', percent: null },
    ]);
  });

  it('are another matter where a line tells of an error, a rank ended, or it serves', () => {
    const erred = answerTo({ head: `${head}quux.FrobnicationError: the flux is 12 over 7\n` });
    expect(erred.finding?.title).not.toContain('nothing had failed');
    expect(erred.reached).toBeUndefined();
    expect(jsonOf({ head: String(HEALTHY.get('sglang-single')?.['head']) })).not.toHaveProperty('reached');
    const evidence = evidenceOfTexts(
      { head: Buffer.from(head) },
      { facts: [], launched: [], exits: { head: 1 } },
    );
    expect(verdictOf(evidence).reached).toBeUndefined();
    expect(verdictOf(evidence).finding?.title).toContain('ended with exit code 1');
  });

  it('say no more than they know where no line is the engine’s', () => {
    expect(answerTo({ head: 'hello\n' }).reached).toBeUndefined();
  });

  it('are told after an earlier start that failed as that failure, with what came since', () => {
    const oom =
      '[2026-11-29 20:03:30] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n';
    const said = answerTo({ head: head + oom + head });
    expect(said).toMatchObject({ family: 'A', atFault: 'head' });
    expect(said.finding?.consequences.at(-1)).toBe(
      'It was started anew since, and nothing has failed yet: head stood at weights, 85 %, in line 81 (2026-11-29 20:03:20).',
    );
  });
});
