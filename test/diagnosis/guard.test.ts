import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { treat } from '../../src/diagnosis/treat.ts';
import type { Evidence } from '../../src/domain/evidence.ts';
import { type GuardRecord, parseGuard } from '../../src/domain/guard.ts';
import { guardWords } from '../../src/domain/guard-words.ts';
import { parseOwnRecords } from '../../src/knowledge/probes/own-records.ts';
import { guarding } from '../pretend/guard-records.ts';
import { outputOf } from '../probes/output-of.ts';
import { evidenceOf } from './cases.ts';

const GIB = 2 ** 30;
const WORKER = [
  '[2026-11-29 20:44:36 TP1] Init torch distributed begin.',
  '[2026-11-29 20:44:37 TP1] Init torch distributed ends. elapsed=0.82 s, mem usage=2.60 GB',
  '[2026-11-29 20:44:37 TP1] Load weight begin. avail mem=112.82 GB',
  '[2026-11-29 20:44:41 TP1] Load weight end. elapsed=3.51 s, type=Qwen3_5MoeForConditionalGeneration, quant=fp8, avail mem=53.63 GB, mem usage=59.20 GB.',
];
const HEAD = WORKER.map((line) => line.replace('TP1', 'TP0'));

const stopped: GuardRecord = {
  ...guarding,
  state: 'stopped',
  why: 'reserve',
  lowestBytes: 2.1 * GIB,
  curve: [
    { second: -2, bytes: 53.6 * GIB },
    { second: -1, bytes: 25.9 * GIB },
    { second: 0, bytes: 2.1 * GIB },
  ],
};

function failed(guard: GuardRecord, worker = WORKER): Evidence {
  const evidence = evidenceOf({
    engine: 'sglang',
    logs: { head: HEAD, worker },
    ended: { worker: 137 },
    recipe: { memory: { fraction: 0.8 }, context: 32768 },
  });
  return {
    ...evidence,
    ranks: evidence.ranks.map((rank) => (rank.role === 'worker' ? { ...rank, guard } : rank)),
  };
}

describe('a rank that its guard stopped', () => {
  it('is the finding, with the node, the curve and where its log stood', () => {
    const finding = diagnose(failed(stopped), { final: true });
    expect(finding).toMatchObject({
      cause: 'memory-exhausted-rank-stopped',
      node: 'spark-b',
      rank: 1,
      confidence: 1,
      why: '2.1 GiB were available there, down from 53.6 GiB in 2 s, and 3.0 GiB are to stay free.',
      values: { curve: '-2:54886 -1:26522 0:2150', stoppedBy: 'docker', why: 'reserve' },
    });
    expect(finding.title).toContain('spark-b');
    expect(finding.quotes).toMatchObject([{ rank: 1, line: 4 }]);
    // A bar that was drawn anew left a prefix alone behind.
    const cut = failed(stopped, [...WORKER, '(Worker_TP1 pid=23997) ']);
    expect(diagnose(cut, { final: true }).quotes).toMatchObject([{ rank: 1, line: 4 }]);
  });

  it('is given a smaller share next, then a shorter context', () => {
    const evidence = failed(stopped);
    const finding = diagnose(evidence, { final: true });
    const input = { recipe: evidence.recipe, engine: evidence.engine, finding, facts: [], evidence };
    const first = treat({ ...input, tried: [] });
    expect(first).toMatchObject({ remedy: 'less-memory', edits: [{ path: 'memory.fraction', to: 0.75 }] });
    const second = treat({
      ...input,
      tried: [{ engine: 'sglang', remedy: 'less-memory', cause: finding.cause }],
    });
    expect(second).toMatchObject({ remedy: 'shorter-context', edits: [{ path: 'context', to: 16384 }] });
  });

  it.each([
    ['falling', /within two seconds they would have been gone/],
    ['driver', /the driver reported NV_ERR_NO_MEMORY 2 times/],
  ] as const)('says so when it was %s', (why, said) => {
    expect(diagnose(failed({ ...stopped, why, driverErrors: 2 }), { final: true }).why).toMatch(said);
  });

  it('is not told of one that only guarded, whatever the exit code', () => {
    expect(diagnose(failed(guarding), { final: true }).cause).not.toBe('memory-exhausted-rank-stopped');
  });
});

describe('a kill for memory', () => {
  it('is claimed as certain from the counter of the rank’s own cgroup alone', () => {
    const counted = diagnose(failed({ ...guarding, oomKills: 1 }), { final: true });
    expect(counted).toMatchObject({
      cause: 'oom-killer-during-weight-load',
      node: 'spark-b',
      confidence: 0.95,
      values: { oomKills: '1' },
    });
    const guessed = diagnose(failed(guarding), { final: true });
    expect(guessed.confidence).toBeLessThan(0.9);
  });
});

describe('a kill from outside', () => {
  const closed =
    '[2026-11-29 20:44:40 TP0] RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [192.168.200.13]:17204';
  const killed = (guard: GuardRecord) => {
    const evidence = failed(guard, WORKER.slice(0, 3));
    const ranks = evidence.ranks.map((rank) =>
      rank.role === 'head'
        ? {
            ...rank,
            lines: [...rank.lines, { line: 5, at: Date.parse('2026-11-29T20:44:40Z'), text: closed }],
          }
        : rank,
    );
    return diagnose({ ...evidence, ranks }, { final: true });
  };

  it('is no want of memory where the guard saw memory to spare all the time', () => {
    const finding = killed(guarding);
    expect(finding).toMatchObject({
      cause: 'worker-died-head-still-healthy',
      family: 'K',
      node: 'spark-b',
      rank: 1,
    });
    expect(finding.why).toContain('19.8 GiB');
    expect(finding.quotes.map(({ rank, line }) => [rank, line])).toEqual([
      [0, 5],
      [1, 3],
    ]);
  });

  it('is named by its own cause where it met the head', () => {
    const evidence = failed(guarding, WORKER.slice(0, 3));
    const ranks = evidence.ranks.map((rank) => ({
      ...rank,
      guard: guarding,
      ended: rank.role === 'head' ? { code: 137, requested: false, at: evidence.now } : undefined,
    }));
    const finding = diagnose({ ...evidence, ranks }, { final: true });
    expect(finding).toMatchObject({
      cause: 'head-ended-from-outside',
      family: 'K',
      node: 'spark-a',
      rank: 0,
    });
  });

  it('is none where the rank says itself that its tree ends: SGLang kills its own', () => {
    const evidence = failed(guarding, [
      ...WORKER,
      '[2026-11-29 20:44:58] Received sigquit from a child process. It usually means the child failed.',
    ]);
    expect(diagnose(evidence, { final: true }).cause).not.toBe('worker-died-head-still-healthy');
  });

  it('is likely the kernel’s where memory came near its end, or nobody watched it', () => {
    expect(killed({ ...guarding, lowestBytes: 2.9 * GIB }).cause).toBe('oom-killer-during-weight-load');
    expect(killed({ ...guarding, state: 'blind' }).cause).toBe('oom-killer-during-weight-load');
  });
});

describe('what a guard put down', () => {
  const text = JSON.stringify({
    state: 'guards',
    by: 'docker',
    why: '',
    memory: 'host',
    reserveKib: 3145728,
    kernelLog: 'unknown',
    driverErrors: 0,
    oomKills: 0,
    lowestKib: 1024,
    lowestAt: 1795981898,
    curve: [],
  });

  it('comes back with the look, and whether it still runs', () => {
    const service = JSON.stringify({ name: 'qwen-r0', engine: 'sglang' });
    const read = (life: string) =>
      parseOwnRecords(outputOf(`read\nrank /x/qwen-r0\nservice ${service}\nguard ${life} ${text}\nend\n`));
    expect(read('alive')).toMatchObject({
      value: {
        ranks: [{ guard: { state: 'guards', alive: true, reserveBytes: 3 * GIB, lowestBytes: 2 ** 20 } }],
      },
    });
    expect(read('gone')).toMatchObject({ value: { ranks: [{ guard: { alive: false } }] } });
  });

  it('is nothing where it is cut or no record, and never a number that was not there', () => {
    for (let at = 0; at < text.length; at += 1) expect(parseGuard(text.slice(0, at))).toBeUndefined();
    for (const wrong of ['', '[]', '{}', 'null', '{"state":"guards"}', text.replace('3145728', '"3145728"')])
      expect(parseGuard(wrong)).toBeUndefined();
    expect(parseGuard(text.replace('"curve":[]', '"curve":[[1],["x",2],[-1,5],7]'))?.curve).toEqual([
      { second: -1, bytes: 5 * 1024 },
    ]);
  });

  it('is said in words that tell the unguarded from the guarded', () => {
    expect(guardWords(guarding)).toBe('guarded, stopped by docker kill under 3.0 GiB available');
    expect(guardWords({ ...guarding, kernelLog: 'unknown' })).toMatch(/what the driver reports is unknown/);
    expect(guardWords({ ...guarding, state: 'unguarded', by: 'none' })).toMatch(/^unguarded: /);
    expect(guardWords(stopped)).toBe('stopped by its guard with 2.1 GiB available, under 3.0 GiB');
  });
});
