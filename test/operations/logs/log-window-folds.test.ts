import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Event } from '../../../src/domain/event.ts';
import type { Quote } from '../../../src/domain/finding.ts';
import type { LogPlace, LogWindow } from '../../../src/domain/log-rows.ts';
import { foldAll, type RunState } from '../../../src/domain/run-state.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { openJournal } from '../../../src/journal/sqlite-journal.ts';
import { logStrip } from '../../../src/operations/logs/log-strip.ts';
import { type LogQuery, logWindow } from '../../../src/operations/logs/log-window.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-folds-'));
let journal: Journal;
beforeAll(() => {
  journal = openJournal(folder);
});
afterAll(() => {
  journal.close();
  rmSync(folder, { recursive: true, force: true });
});

const ALL: LogQuery = {
  from: undefined,
  count: 500,
  ranks: [],
  attempt: undefined,
  stage: undefined,
  level: undefined,
  q: '',
  fold: true,
  open: [],
};

/** A run of two ranks, with what its finding quotes. */
function state(run: string, quotes: readonly Quote[] = []): RunState {
  const head = { v: 1, run, at: '1970-01-01T00:00:00.000Z' } as const;
  const started = (seq: number, rank: number): Event => ({
    ...head,
    seq,
    type: 'rank-started',
    attempt: 1,
    node: `spark-${rank}`,
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'vllm',
    name: `r${rank}`,
    log: '',
    followed: false,
  });
  const found: Event = {
    ...head,
    seq: 5,
    type: 'finding',
    attempt: 1,
    cause: 'unknown',
    node: undefined,
    rank: undefined,
    role: undefined,
    stage: undefined,
    final: true,
    confidence: 1,
    title: '',
    why: '',
    quotes,
    consequences: [],
    advice: [],
    values: {},
  };
  return { ...foldAll([started(2, 0), started(3, 1), ...(quotes.length > 0 ? [found] : [])]), run };
}

function newRun(lines: readonly (readonly [rank: number, text: string])[]): string {
  const run = journal.newRun();
  for (const [at, [rank, text]] of lines.entries()) journal.appendLog(run, 1, rank, [{ at, text }]);
  return run;
}

const seen = (window: LogWindow): readonly string[] =>
  window.rows.map(({ rank, text, fold }) =>
    fold === undefined
      ? `${rank} ${text}`
      : `${rank} ${text} ${fold.open ? '▾' : '▸'}${fold.count} ${fold.kind}`,
  );
const at = (rank: number, line: number): LogPlace => ({ attempt: 1, rank, line });
const quote = (rank: number, line: number): Quote => ({ rank, line, node: `spark-${rank}`, text: '' });

const LINES = [
  [0, 'begin'],
  [0, 'shard  10%| 1/9'],
  [1, 'shard  20%| 2/9'],
  [0, 'shard  40%| 4/9'],
  [1, 'shard  60%| 6/9'],
  [1, 'WARNING: few pages, 7'],
  [0, 'shard 100%| 9/9'],
  [1, 'WARNING: few pages, 6'],
  [1, 'WARNING: few pages, 5'],
  [0, 'end'],
] as const;

describe('a window of a folded log', () => {
  it("shows each rank's bar as its latest line, where it began, and a warning once more where it repeats", async () => {
    const run = newRun(LINES);
    const window = await logWindow({ journal }, state(run), ALL);
    expect(seen(window)).toEqual([
      '0 begin',
      '0 shard 100%| 9/9 ▸2 bar',
      '1 shard  60%| 6/9 ▸1 bar',
      '1 WARNING: few pages, 7',
      '1 WARNING: few pages, 5 ▸1 line',
      '0 end',
    ]);
    expect(window).toMatchObject({ total: 6, lines: 10, warnings: 3, errors: 0 });
    expect(window.rows[1]).toMatchObject({ line: 4, at: 6, fold: { place: at(0, 2) } });
    expect(seen(await logWindow({ journal }, state(run), { ...ALL, fold: false }))).toHaveLength(10);
  });

  it('opens the folds that it is told to by any line in them', async () => {
    const run = newRun(LINES);
    const window = await logWindow({ journal }, state(run), { ...ALL, open: [at(0, 3), at(1, 5)] });
    expect(seen(window)).toEqual([
      '0 begin',
      '0 shard  10%| 1/9 ▾2 bar',
      '1 shard  60%| 6/9 ▸1 bar',
      '0 shard  40%| 4/9',
      '1 WARNING: few pages, 7',
      '0 shard 100%| 9/9',
      '1 WARNING: few pages, 6 ▾1 line',
      '1 WARNING: few pages, 5',
      '0 end',
    ]);
  });

  it('finds a line in a closed fold by opening it, and says which; one outside leaves all closed', async () => {
    const run = newRun(LINES);
    const inside = await logWindow({ journal }, state(run), { ...ALL, around: at(0, 3), count: 2 });
    expect(inside.opened).toEqual(at(0, 2));
    expect(inside.from).toBe(3);
    expect(seen(inside)).toEqual(['0 shard  40%| 4/9', '1 WARNING: few pages, 7']);
    const outside = await logWindow({ journal }, state(run), { ...ALL, around: at(1, 3), count: 1 });
    expect(outside).toMatchObject({ from: 3, total: 6 });
    expect(outside.opened).toBeUndefined();
    const filtered = await logWindow({ journal }, state(run), {
      ...ALL,
      ranks: [0],
      around: at(0, 4),
      count: 1,
    });
    expect(seen(filtered)).toEqual(['0 shard 100%| 9/9']);
  });

  it('never folds away what a finding quotes, nor what is searched for', async () => {
    const run = newRun(LINES);
    const quoting = state(run, [quote(0, 2), quote(1, 4)]);
    expect(seen(await logWindow({ journal }, quoting, ALL))).toEqual([
      '0 begin',
      '0 shard  10%| 1/9',
      '1 shard  60%| 6/9 ▸1 bar',
      '0 shard 100%| 9/9 ▸1 bar',
      '1 WARNING: few pages, 7',
      '1 WARNING: few pages, 6',
      '1 WARNING: few pages, 5',
      '0 end',
    ]);
    const quoted = await logWindow({ journal }, quoting, { ...ALL, around: at(0, 2), count: 1 });
    expect(quoted.from).toBe(1);
    expect(quoted.opened).toBeUndefined();
    const searched = await logWindow({ journal }, state(run), { ...ALL, q: 'SHARD', open: [at(0, 2)] });
    expect(seen(searched)).toEqual([
      '0 shard  10%| 1/9',
      '1 shard  20%| 2/9',
      '0 shard  40%| 4/9',
      '1 shard  60%| 6/9',
      '0 shard 100%| 9/9',
    ]);
  });

  it('shows a traceback by its frames, and counts no frame as an error', async () => {
    const run = newRun([
      [0, 'Traceback (most recent call last):'],
      [0, '  File "/a.py", line 6, in <module>'],
      [1, 'shard  20%| 2/9'],
      [0, '    run()'],
      [0, '  File "/b.py", line 9, in run'],
      [0, '    raise ValueError(1)'],
      [0, 'ValueError: 1'],
    ]);
    const window = await logWindow({ journal }, state(run), ALL);
    expect(seen(window)).toEqual([
      '0 Traceback (most recent call last):',
      '0     raise ValueError(1) ▸2 frames',
      '1 shard  20%| 2/9',
      '0 ValueError: 1',
    ]);
    expect(window.errors).toBe(2);
  });

  it("tells how much of a line is the engine's stamp", async () => {
    const run = newRun([
      [0, '[2026-11-29 10:00:14 TP0] sglang is using nccl==2.28.9'],
      [1, '(Worker_TP1 pid=31) INFO 11-29 10:01:36 [default_loader.py:430] Loading weights took 79 seconds'],
      [1, 'no stamp'],
    ]);
    const { rows } = await logWindow({ journal }, state(run), ALL);
    expect(rows.map(({ text, prefix }) => text.slice(prefix))).toEqual([
      'sglang is using nccl==2.28.9',
      'Loading weights took 79 seconds',
      'no stamp',
    ]);
  });

  it('has a strip of its whole length: how much came when, what went wrong, what is quoted, where ranks moved on', async () => {
    const run = newRun([...LINES, [0, 'ERROR: over']]);
    const quoting = state(run, [quote(0, 5)]);
    const moved: RunState = {
      ...quoting,
      attempts: quoting.attempts.map((attempt) => ({
        ...attempt,
        ranks: attempt.ranks.map((rank) => ({ ...rank, entered: { weights: new Date(4).toISOString() } })),
      })),
    };
    const strip = await logStrip({ journal }, moved, ALL, 4);
    // begin, bar | bar of the other | warning, warnings | the quoted end, the error
    expect(strip).toEqual({
      total: 7,
      lines: [1, 5, 3, 2],
      milliseconds: [1, 4, 4, 1],
      warnings: [0, 0, 3, 0],
      errors: [0, 0, 0, 1],
      quotes: [0, 0, 0, 1],
      marks: [0, 0, 2, 0],
      stops: [
        { ...at(1, 3), row: 3 },
        { ...at(0, 5), row: 5 },
      ],
    });
    const { rows } = await logWindow({ journal }, moved, ALL);
    expect(rows.flatMap(({ marks }, row) => (marks === undefined ? [] : [[row, ...marks]]))).toEqual([
      [3, 'rank 0 · weights', 'rank 1 · weights'],
    ]);
    const narrow = await logStrip({ journal }, moved, { ...ALL, ranks: [1], level: 'warning' }, 100);
    expect(narrow).toMatchObject({ total: 2, lines: [1, 2], warnings: [1, 2], marks: [1, 0] });
    expect(await logStrip({ journal }, moved, { ...ALL, q: 'nothing like it' }, 100)).toMatchObject({
      total: 0,
      lines: [],
    });
  });

  it('is the same however the lines came in: in pieces, and late', async () => {
    const text = fc.constantFrom(
      'shard 10%| 1',
      'shard 50%| 2',
      'shard 90%| 3',
      'port 1 shut',
      'retry 2',
      'ERROR: 3',
      '',
    );
    const piece = fc.record({
      rank: fc.nat(1),
      lines: fc.array(fc.tuple(fc.nat(20), text), { maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 8 }), fc.nat(12), async (pieces, line) => {
        const grown = journal.newRun();
        const queries = [
          ALL,
          { ...ALL, open: [at(0, line)] },
          { ...ALL, level: 'error' as const },
          { ...ALL, ranks: [1] },
        ];
        const lines: [{ at: number; text: string }[], { at: number; text: string }[]] = [[], []];
        let tick = 0;
        for (const { rank, lines: some } of pieces) {
          // Moments may lie before what the other rank said already.
          const more = some.map(([moment, text]) => ({ at: moment * 100 + tick++ / 1000, text }));
          journal.appendLog(grown, 1, rank, more);
          lines[rank === 0 ? 0 : 1].push(...more);
          for (const query of queries) await logWindow({ journal }, state(grown), query);
        }
        const whole = journal.newRun();
        for (const [rank, all] of lines.entries()) journal.appendLog(whole, 1, rank, all);
        for (const query of queries)
          expect(await logWindow({ journal }, state(grown), query)).toEqual(
            await logWindow({ journal }, state(whole), query),
          );
      }),
      { numRuns: 60 },
    );
  });
});
