import { expect, test } from 'vitest';
import { known, type ReachedFacts, unknown } from '../../src/domain/facts.ts';
import type { MemoryReport } from '../../src/domain/report.ts';
import { paint } from '../../src/faces/cli/color.ts';
import { glyphs } from '../../src/faces/cli/glyphs.ts';
import { renderReport } from '../../src/faces/cli/render.ts';
import type { Style } from '../../src/faces/cli/style.ts';
import { width } from '../../src/faces/cli/width.ts';
import { parseMeminfo } from '../../src/knowledge/probes/meminfo.ts';
import { nodeMemory } from '../../src/planning/node-memory.ts';
import { fullWorker, GIB, spark, storyHolders } from '../pretend/facts.ts';
import { golden } from './golden.ts';
import { operation, run, Terminal } from './run-cli.ts';

const style: Style = {
  columns: 80,
  paint: paint(false),
  glyphs: glyphs(true),
  now: Date.parse('2026-11-29T10:00:05.000Z'),
  verbose: false,
};

function memory(gib: Readonly<Record<string, number>>, more = '') {
  const rest = {
    Buffers: 0.2,
    Shmem: 0.1,
    Dirty: 0.1,
    Writeback: 0,
    Slab: 0.9,
    SReclaimable: 0.4,
    KernelStack: 0.1,
    PageTables: 0.2,
    Hugetlb: 0,
    SwapTotal: 16,
    SwapFree: 16,
    SwapCached: 0,
    CmaTotal: 0.1,
    CmaFree: 0.1,
  };
  const text = Object.entries({ ...rest, ...gib })
    .map(([key, value]) => `${key}: ${Math.round(value * 2 ** 20)} kB\n`)
    .join('');
  return parseMeminfo({ code: 0, stdout: text + more, stderr: '', timedOut: false });
}

const PRESSURE =
  'some avg10=0.40 avg60=0.10 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n';

/** The worker of the story: three holders, and one of ours left behind. */
function worker(): ReachedFacts {
  const [unit, container, bare] = storyHolders;
  if (unit === undefined || container === undefined || bare === undefined) throw new Error('no holders');
  const loop = {
    by: 'loop' as const,
    what: 'a shell loop of root, pid 3300: while true; do python train.py; done',
    keepAway: 'end the loop first: kill 3300',
    handled: false,
  };
  return fullWorker({
    memory: memory(
      { MemTotal: 119.7, MemFree: 7.8, MemAvailable: 36.1, Cached: 30.4, AnonPages: 3.1 },
      PRESSURE,
    ),
    holders: known([
      unit,
      container,
      { ...bare, returns: [loop] },
      {
        ...bare,
        identity: 'orphan old-r1 77:5',
        name: 'old-r1',
        owner: {
          kind: 'rank',
          name: 'old-r1',
          orphan: { why: 'its rank has ended and left it behind', processes: [{ pid: 77, startTicks: '5' }] },
        },
        pid: 77,
        bytes: 1.5 * GIB,
        gpuBytes: known(1.2 * GIB),
      },
    ]),
  });
}

function reportOf(needBytes: number | undefined, ...facts: readonly ReachedFacts[]): MemoryReport {
  return {
    kind: 'memory',
    cluster: 'sparks',
    milliseconds: 900,
    needBytes,
    nodes: [...facts.map((one) => nodeMemory(one, needBytes))],
  };
}

function text(report: MemoryReport, differs: Partial<Style> = {}): string {
  return renderReport(report, { ...style, ...differs }, { why: false, streamed: false });
}

test('memory reads as the golden file: who holds how much, what can be had, what would have to go', () => {
  golden('report-memory', text(reportOf(88 * GIB, worker())));
});

test('a Spark that prints a total, with next to nothing available beside a full cache, is warned of', () => {
  const none = unknown('this GPU uses the memory of the host');
  const facts = spark('b', {
    memory: memory({ MemTotal: 119.7, MemFree: 3.2, MemAvailable: 1.2, Cached: 99, AnonPages: 8 }),
    gpus: known([
      {
        index: 0,
        name: 'NVIDIA GB10',
        uuid: 'GPU-b',
        unified: true,
        totalBytes: none,
        freeBytes: none,
        driver: '580.95.05',
        printed: { totalBytes: 95896 * 2 ** 20, freeBytes: known(95896 * 2 ** 20) },
      },
    ]),
  });
  golden('report-memory-misleading', text(reportOf(undefined, facts)));
});

test('cards of their own are told each with its memory, and what is unknown with why', () => {
  const card = {
    index: 0,
    name: 'NVIDIA H200',
    uuid: 'GPU-0',
    unified: false,
    totalBytes: known(140.4 * GIB),
    freeBytes: known(109.2 * GIB),
    driver: '590.48.01',
  };
  const cut = {
    ...card,
    index: 1,
    mig: known([
      { profile: '3g.71gb', uuid: 'MIG-1' },
      { profile: '1g.18gb', uuid: 'MIG-2' },
    ]),
  };
  const facts = spark('a', {
    memory: memory({ MemTotal: 503.5, MemFree: 400, MemAvailable: 480, Cached: 80, AnonPages: 9 }, PRESSURE),
    gpus: known([card, cut]),
    containers: unknown('docker refuses this user: it is not in the group docker'),
    sudo: known('none'),
  });
  golden('report-memory-cards', text(reportOf(undefined, facts)));
});

test('a node that was not reached is told as such, and a hanging nvidia-smi with the way out', () => {
  const away = nodeMemory(
    {
      node: 'spark-a',
      at: '2026-11-29T10:00:00.000Z',
      reached: false,
      failure: {
        kind: 'unreachable',
        why: 'refused',
        sentence: 'spark-a refuses SSH',
        remedy: 'start sshd there',
        text: '',
      },
    },
    undefined,
  );
  const why = 'nvidia-smi gave no answer in 5 s';
  const hung = spark('b', {
    memory: memory({ MemTotal: 119.7, MemFree: 90, MemAvailable: 100, Cached: 12, AnonPages: 3 }),
    gpus: unknown(why),
    driver: {
      version: known('580.159.03'),
      flavour: known('proprietary'),
      listed: known(1),
      trouble: { kind: 'hangs', why, remedy: 'a hung driver ends only with a restart', seen: [] },
    },
  });
  const report = { ...reportOf(undefined, hung), nodes: [away, nodeMemory(hung, undefined)] };
  golden('report-memory-unknown', text(report));
});

test('nothing is wider than the terminal, in Unicode and without', () => {
  for (const columns of [60, 80, 120])
    for (const unicode of [true, false])
      for (const verbose of [true, false]) {
        const lines = text(reportOf(200 * GIB, worker()), {
          columns,
          glyphs: glyphs(unicode),
          verbose,
        }).split('\n');
        const wide = lines.filter((line) => width(line) > columns && !/\/proc\/|kill \d/.test(line));
        expect(wide).toEqual([]);
      }
});

/** `memory --watch` of three looks, as the operation tells them. */
function watching() {
  return operation('memory', async (_input, world) => {
    const looks = [20, 30, 40].map((gib) =>
      reportOf(
        undefined,
        spark('b', {
          memory: memory({ MemTotal: 119.7, MemFree: gib, MemAvailable: gib, Cached: 1, AnonPages: 3 }),
        }),
      ),
    );
    for (const report of looks) world.live({ kind: 'memory', report });
    const [, , last] = looks;
    if (last === undefined) throw new Error('no look');
    return { report: last, exit: 0 };
  });
}

test('a watch prints each look below the other in plain, and each as a line with --json', async () => {
  const plain = await run(['memory', '--watch', '--plain'], [watching()]);
  expect(plain.stdout.match(/GiB {2}unified/g)).toHaveLength(3);
  expect(plain.stdout).not.toContain('\x1b');
  const json = await run(['memory', '--watch', '--json'], [watching()]);
  const lines = json.stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual([
    'memory',
    'memory',
    'memory',
  ]);
});

test('a watch on a terminal draws over its last look, and leaves the last one standing', async () => {
  const stdout = new Terminal();
  const { stdout: written } = await run(['memory', '--watch'], [watching()], { stdout });
  const frames = written.split(/\x1b\[\d+A\r/);
  expect(frames).toHaveLength(3);
  const rows = (frames[0] ?? '').split('\n').length - 1;
  expect(written).toContain(`\x1b[${rows}A\r`);
  expect(frames.at(-1)).toContain('40.0 available');
  expect(frames.at(-1)).toContain('Ctrl-C ends the watch');
});
