import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { known, type ReachedFacts } from '../../src/domain/facts.ts';
import type { LookRequest, ProbeOutput } from '../../src/domain/probe.ts';
import { assembleFacts, probesFor } from '../../src/knowledge/probes/index.ts';
import { parseMeminfo } from '../../src/knowledge/probes/meminfo.ts';
import { memoryTroubles } from '../../src/planning/memory-items.ts';
import { nodeMemory } from '../../src/planning/node-memory.ts';
import { buildFakeSpark } from './fake-spark.ts';
import { sample } from './golden.ts';
import { outputOf } from './output-of.ts';
import { runProbesHere } from './run-probes-here.ts';

const request: LookRequest = { modelPath: undefined, images: [], programs: [], peers: [] };
const folder = mkdtempSync(join(tmpdir(), 'firstlight-fuzz-'));
const NAMES = probesFor({ ...request, memoryOnly: true }).map(({ name }) => name);

/** What a pretended Spark's probes print, and the facts of it. */
let whole: ReadonlyMap<string, ProbeOutput> = new Map();
let facts: ReachedFacts;

beforeAll(() => {
  buildFakeSpark(join(folder, 'root'), join(folder, 'bin'), join(folder, 'home'));
  whole = runProbesHere(['dash'], request, {
    PATH: `${folder}/bin:${process.env['PATH']}`,
    HOME: join(folder, 'home'),
    FIRSTLIGHT_ROOT: join(folder, 'root'),
  });
  facts = assemble(whole);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function assemble(outputs: ReadonlyMap<string, ProbeOutput>): ReachedFacts {
  return assembleFacts({
    node: 'spark-b',
    at: '2026-11-29T10:00:00Z',
    milliseconds: 300,
    outputs,
    request,
    clockOffsetSeconds: known(0),
  });
}

function cutAt(name: string, length: number, timedOut: boolean): ReachedFacts {
  const output = whole.get(name) ?? outputOf('');
  return assemble(
    new Map([...whole, [name, { ...output, stdout: output.stdout.slice(0, length), timedOut }]]),
  );
}

/** Every number, by where it stands; holders by their pid, since whose it is may not be known of a part. */
function numbers(value: unknown, path = ''): readonly (readonly [string, number])[] {
  if (typeof value === 'number') return [[path, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => numbers(inner, `${path}/${key}`));
}

function ledger(of: ReachedFacts): readonly (readonly [string, number])[] {
  const holders = of.holders.known
    ? Object.fromEntries(
        of.holders.value.map(({ pid, gpuBytes, residentBytes }) => [pid, { gpuBytes, residentBytes }]),
      )
    : {};
  return numbers({ memory: of.memory, gpus: of.gpus, holders });
}

/** What each process has by itself, as the table of them says. */
function alone(): readonly (readonly [string, number])[] {
  const table = whole.get('processes')?.stdout ?? '';
  return [...table.matchAll(/^P (\d+) (?:-?\d+ ){4}(\d+) /gm)].map(
    ([, pid, kib]) => [`/holders/${pid}/residentBytes/value`, Number(kib) * 1024] as const,
  );
}

describe('what a probe printed only in part', () => {
  it('is whole to begin with', () => {
    expect(facts.memory.known && facts.gpus.known && facts.holders.known && facts.containers.known).toBe(
      true,
    );
    expect(ledger(facts).length).toBeGreaterThan(50);
  });

  it('breaks nothing, and gives no number that the whole does not give', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...NAMES),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.boolean(),
        (name, share, late) => {
          const length = Math.floor((whole.get(name)?.stdout.length ?? 0) * share);
          const part = cutAt(name, length, late);
          // Of a service whose first process was cut off, the largest of the others stands for it with its own size.
          const all = new Map([...alone(), ...ledger(facts)]);
          for (const [path, value] of ledger(part)) {
            expect([path, value]).toEqual([path, all.get(path)]);
          }
          // Everything that is made of it is made without a mistake.
          nodeMemory(part, 90 * 2 ** 30);
          memoryTroubles(part, 6 * 2 ** 30);
        },
      ),
      { numRuns: 250 },
    );
  });

  it('lists no fewer containers, ports, GPUs or ranks as if that were all', () => {
    for (const name of NAMES) {
      const { length } = whole.get(name)?.stdout ?? '';
      for (let at = 0; at < length; at += Math.max(1, Math.floor(length / 60))) {
        const part = cutAt(name, at, false);
        for (const key of ['containers', 'ports', 'gpus', 'ranks'] as const) {
          const [some, all] = [part[key], facts[key]];
          if (some.known && all.known)
            expect([name, at, key, some.value.length]).toEqual([name, at, key, all.value.length]);
        }
        if (
          part.holders.known &&
          facts.holders.known &&
          part.holders.value.length < facts.holders.value.length
        ) {
          // A holder that only the GPU knows may be missing; then what GPUs hold is unknown.
          expect(part.holders.value.every(({ gpuBytes }) => !gpuBytes.known) || !part.containers.known).toBe(
            true,
          );
        }
      }
    }
  });
});

describe('what no program promised to print', () => {
  const garbage = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc
      .array(
        fc.constantFrom(
          'P',
          'C',
          'X',
          'A',
          'R 0',
          'L ss',
          'E',
          'D',
          'B',
          'M',
          'Y',
          'gpu',
          'end',
          ',',
          ' ',
          '\n',
          '0',
          '-1',
          '9'.repeat(30),
          '[N/A]',
          '\u0000',
          '::',
        ),
        { maxLength: 60 },
      )
      .map((parts) => parts.join(' ')),
  );

  it('breaks nothing wherever it stands', () => {
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), garbage, fc.nat(), fc.boolean(), (name, text, where, over) => {
        const output = whole.get(name) ?? outputOf('');
        const at = where % (output.stdout.length + 1);
        const stdout = output.stdout.slice(0, at) + text + output.stdout.slice(over ? at + text.length : at);
        const seen = assemble(new Map([...whole, [name, { ...output, stdout }]]));
        for (const [path, value] of ledger(seen))
          expect([path, Number.isSafeInteger(value) || path.includes('pressure')]).toEqual([path, true]);
        nodeMemory(seen, 90 * 2 ** 30);
      }),
      { numRuns: 250 },
    );
  });

  it('makes no card of a MIG parent without numbers, and no number of its N/A', () => {
    const rows = sample('errors/compute-apps-insufficient-permissions.csv');
    fc.assert(
      fc.property(fc.nat({ max: rows.length }), (length) => {
        const apps = rows.slice(0, length).replace(/^/gm, 'A ');
        const table = (whole.get('processes')?.stdout ?? '')
          .replace(/^A .*\n/gm, '')
          .replace(/^B$/m, `${apps}\nB`);
        const seen = assemble(new Map([...whole, ['processes', outputOf(table)]]));
        for (const holder of seen.holders.known ? seen.holders.value : [])
          expect(holder.gpuBytes.known ? holder.gpuBytes.value : 0).toBe(0);
      }),
    );
  });

  it('takes no number for memory that no host has', () => {
    const long = '9'.repeat(30);
    expect(parseMeminfo(outputOf(`MemTotal: ${long} kB\nMemFree: 1 kB\nMemAvailable: 1 kB\n`)).known).toBe(
      false,
    );
    const table = whole.get('processes')?.stdout ?? '';
    const spoilt = table.replace(/^(P 800 (?:-?\d+ ){4})\d+/m, `$1${long}`);
    expect(spoilt).not.toBe(table);
    const seen = assemble(new Map([...whole, ['processes', outputOf(spoilt)]]));
    for (const [path, value] of ledger(seen)) expect([path, value < 2 ** 50]).toEqual([path, true]);
  });
});
