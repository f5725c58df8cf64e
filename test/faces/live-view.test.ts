import { expect, test } from 'vitest';
import { known, valueIf } from '../../src/domain/facts.ts';
import { foldAll } from '../../src/domain/run-state.ts';
import { type LiveState, noLive } from '../../src/faces/cli/live-state.ts';
import { frame } from '../../src/faces/cli/live-view.ts';
import { width } from '../../src/faces/cli/width.ts';
import { storyEvents, storyTime, storyUntil } from '../pretend/story-events.ts';
import { golden } from './golden.ts';

const GIB = 2 ** 30;
const live: LiveState = {
  beats: new Map([
    ['spark-a', 71.3 * GIB],
    ['spark-b', 72 * GIB],
  ]),
  lines: [
    {
      rank: 0,
      at: storyTime(172),
      text: 'Loading safetensors checkpoint shards:  64% Completed | 25/39 [01:07<00:38,  2.71s/it]',
    },
    {
      rank: 1,
      at: storyTime(166),
      text: 'Loading safetensors checkpoint shards:  52% Completed | 20/39 [00:24<01:02,  3.27s/it]',
    },
  ],
  interrupted: false,
};

const SIZES = [
  { columns: 80, rows: 24 },
  { columns: 120, rows: 40 },
] as const;

for (const { columns, rows } of SIZES) {
  for (const [name, seconds] of [
    ['looking', 1],
    ['planned', 88],
    ['clearing', 40],
    ['rendezvous', 110],
    ['finding', 133],
    ['weights', 172],
    ['stalled', 213.9],
    ['graphs', 240],
    ['serving', 263],
  ] as const) {
    test(`${name} at ${columns} by ${rows} is as read`, () => {
      const state = foldAll(storyUntil(seconds));
      const shown = frame(state, seconds > 150 ? live : noLive, {
        columns,
        rows,
        now: storyTime(seconds),
        color: false,
        unicode: true,
      });
      golden(`live-${columns}x${rows}-${name}`, `${shown.join('\n')}\n`);
    });
  }
}

test('without Unicode the same picture is drawn in ASCII', () => {
  const shown = frame(foldAll(storyUntil(172)), live, {
    columns: 80,
    rows: 24,
    now: storyTime(172),
    color: false,
    unicode: false,
  }).join('\n');
  expect(shown).toMatch(/^[\x20-\x7e\n]*$/);
  golden('live-80x24-ascii', `${shown}\n`);
});

test('no frame of the story is wider or higher than the terminal, in colour and in ASCII', () => {
  const names = { 'spark-a': 'ein-wirklich-sehr-langer-rechnername-im-keller', 'spark-b': '机器二号🚀' };
  const renamed = storyEvents.map((event) => {
    let text = JSON.stringify(event);
    for (const [from, to] of Object.entries(names)) text = text.replaceAll(from, to);
    return JSON.parse(text);
  });
  const wideLive: LiveState = {
    ...live,
    lines: [{ rank: 1, at: storyTime(172), text: '模型加载中 🚀🚀 '.repeat(30) }],
  };
  for (const events of [storyEvents, renamed]) {
    for (let count = 1; count <= events.length; count += 1) {
      const state = foldAll(events.slice(0, count));
      const now = Date.parse(state.lastAt ?? '') + 5000;
      for (const [columns, rows] of [
        [60, 16],
        [80, 24],
        [200, 50],
        [61, 17],
      ] as const) {
        for (const unicode of [true, false]) {
          const shown = frame(state, wideLive, { columns, rows, now, color: true, unicode });
          expect(shown.length).toBeLessThan(rows);
          for (const line of shown) expect(width(line), line).toBeLessThanOrEqual(columns);
        }
      }
    }
  }
});

test('the last row says what Ctrl-C would do', () => {
  const last = (seconds: number, interrupted = false) =>
    frame(
      foldAll(storyUntil(seconds)),
      { ...noLive, interrupted },
      {
        columns: 80,
        rows: 24,
        now: storyTime(seconds),
        color: false,
        unicode: true,
      },
    ).at(-1);
  expect(last(1)).toContain('Ctrl-C ends the run, nothing is changed by it');
  expect(last(40)).toContain('Ctrl-C ends after this step');
  expect(last(172)).toContain('Ctrl-C detaches, the ranks run on');
  expect(last(172, true)).toContain('Ctrl-C again leaves at once');
});

test('sixteen nodes in a low terminal still leave room for the Now line and the last row', () => {
  const state = foldAll(storyUntil(172));
  const nodes = Array.from({ length: 16 }, (_, index) => `node-${index}`);
  const shown = frame(
    {
      ...state,
      nodes,
      attempts: state.attempts.map((attempt) => ({
        ...attempt,
        ranks: nodes.map((node, rank) => ({ ...(attempt.ranks[0] ?? expect.fail('a rank')), rank, node })),
      })),
    },
    live,
    { columns: 80, rows: 20, now: storyTime(172), color: false, unicode: true },
  );
  expect(shown).toHaveLength(19);
  expect(shown.at(-1)).toContain('Ctrl-C detaches');
  expect(shown.some((line) => line.includes('more rows'))).toBe(true);
});

test('in a low terminal log lines and legend go first, the ranks stay', () => {
  const shown = frame(foldAll(storyUntil(172)), live, {
    columns: 80,
    rows: 16,
    now: storyTime(172),
    color: false,
    unicode: true,
  });
  golden('live-80x16-weights', `${shown.join('\n')}\n`);
  expect(shown.some((line) => line.startsWith('1 spark-b'))).toBe(true);
});

test('the exit code of a rank that ended is shown whole, however narrow its column', () => {
  const events = storyUntil(131).map((event) =>
    event.type === 'rank-ended' ? { ...event, code: 137 } : event,
  );
  const shown = frame(foldAll(events), noLive, {
    columns: 80,
    rows: 24,
    now: storyTime(131),
    color: false,
    unicode: true,
  });
  expect(shown.find((line) => line.startsWith('0 spark-a'))).toMatch(/✕ exit 137$/);
});

test('empty lines of a log take no row', () => {
  const lines = ['a', '', 'b', ' ', 'c'].map((text) => ({ rank: 0, at: storyTime(172), text }));
  const shown = frame(
    foldAll(storyUntil(172)),
    { ...noLive, lines },
    {
      columns: 80,
      rows: 40,
      now: storyTime(172),
      color: false,
      unicode: true,
    },
  );
  expect(shown.filter((line) => line.startsWith('+')).map((line) => line.slice(-1))).toEqual(['a', 'b', 'c']);
});

test('in a wide terminal the GPU’s figures stand beside the bar while the look is fresh, and its plan once', () => {
  const seen = foldAll(storyUntil(88));
  const state = {
    ...seen,
    facts: seen.facts.map((facts) =>
      facts.reached
        ? {
            ...facts,
            gpus: known([
              {
                ...(valueIf(facts.gpus)?.[0] ?? expect.fail('a GPU')),
                heat: { usePercent: 3, celsius: 46, watts: 18.4 },
              },
            ]),
          }
        : facts,
    ),
  };
  const shown = (columns: number, later: number) =>
    frame(state, noLive, { columns, rows: 40, now: storyTime(88 + later), color: false, unicode: true });
  expect(shown(120, 0)[4]).toMatch(/112\.7 GiB available {3}3 % {2}46 °C {3}18 W$/);
  expect(shown(120, 0).filter((line) => line.includes('plan   ') && line.includes('GiB'))).toEqual([
    expect.stringMatching(/88\.3 ± 2\.5 GiB on each: fits$/),
  ]);
  expect(shown(120, 60).join('\n')).not.toContain('°C');
  expect(shown(100, 0).join('\n')).not.toContain('°C');
});

test('what a node has available is dated where neither a look nor a beat is of now', () => {
  const at = (seconds: number, more: Partial<LiveState>) =>
    frame(
      foldAll(storyUntil(seconds)),
      { ...live, ...more },
      { columns: 80, rows: 24, now: storyTime(seconds), color: false, unicode: true },
    ).find((line) => line.startsWith('spark-b worker'));
  const beatAt = new Map([['spark-b', storyTime(150)]]);
  expect(at(160, { beatAt })).toMatch(/72\.0 GiB available$/);
  expect(at(172, { beatAt })).toMatch(/72\.0 GiB at 10:05:11$/);
});

test('at sixty columns the one sentence is whole, and neither rail nor legend is cut', () => {
  for (const seconds of [5, 172, 213.9]) {
    const shown = frame(foldAll(storyUntil(seconds)), live, {
      columns: 60,
      rows: 16,
      now: storyTime(seconds),
      color: false,
      unicode: true,
    });
    golden(`live-60x16-${seconds}`, `${shown.join('\n')}\n`);
  }
});
