import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Ran, Unreachable } from '../../src/domain/command.ts';
import { UserError } from '../../src/domain/user-error.ts';
import { memory } from '../../src/operations/memory.ts';
import type { Live, World } from '../../src/operations/world.ts';
import type { Host } from '../../src/remote/host.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

const MEMINFO =
  'MemTotal: 125442396 kB\nMemFree: 8178892 kB\nMemAvailable: 37853593 kB\nCached: 31876710 kB\n';

/** A host whose looks see a tree of files with its memory, and nothing else. */
function hostOf(name: string, failure: Unreachable | undefined, looks: string[]): Host {
  const ran: Ran = { kind: 'ran', code: 0, stdout: '', stderr: '', milliseconds: 1 };
  return {
    node: { name, ssh: name },
    connect: async () => failure,
    run: async () => ran,
    stream: async ({ argv, stdin = '' }, { stdout }) => {
      looks.push(name);
      const env = { PATH: process.env['PATH'], HOME: root, FIRSTLIGHT_ROOT: root };
      stdout(spawnSync('sh', argv.slice(1).map(String), { input: stdin, env }).stdout);
      return ran;
    },
    leave: async () => undefined,
    dial: () => {
      throw new Error('nothing is dialled');
    },
  };
}

const root = mkdtempSync(join(tmpdir(), 'fl-memory-'));
mkdirSync(join(root, 'proc'));
mkdirSync(join(root, 'tmp'));
writeFileSync(join(root, 'proc/meminfo'), MEMINFO);
afterAll(() => rmSync(root, { recursive: true, force: true }));

const REFUSED: Unreachable = {
  kind: 'unreachable',
  why: 'refused',
  sentence: 'spark-b refuses SSH',
  remedy: 'start sshd',
  text: '',
};

function worldWith(failure?: Unreachable, signal = new AbortController().signal) {
  const looks: string[] = [];
  const told: Live[] = [];
  const base = pretendWorld({ signal, live: (update) => void told.push(update), onEvent: () => undefined });
  const hosts = new Map([
    ['spark-a', hostOf('spark-a', undefined, looks)],
    ['spark-b', hostOf('spark-b', failure, looks)],
  ]);
  const of = (name: string): Host => {
    const host = hosts.get(name);
    if (host === undefined) throw new Error(`no host ${name}`);
    return host;
  };
  const world: World = {
    ...base,
    hosts: { ...base.hosts, of },
    clock: { ...base.clock, wait: async () => undefined },
  };
  return { world, looks, told };
}

const INPUT = { node: [], watch: false };

it('looks at every node in one round trip each, and tells what could be had', async () => {
  const { world, looks } = worldWith();
  const { report, exit } = await memory.run(INPUT, world);
  expect(looks.toSorted()).toEqual(['spark-a', 'spark-b']);
  expect(exit).toBe(0);
  expect(report).toMatchObject({
    kind: 'memory',
    nodes: [
      { node: 'spark-a', canGetBytes: { known: true, value: 37853593 * 1024 - 6 * 2 ** 30 } },
      { node: 'spark-b', holders: { known: false } },
    ],
  });
});

it('looks at the nodes that were named alone, and refuses a name that is none', async () => {
  const { world, looks } = worldWith();
  await memory.run({ ...INPUT, node: ['spark-b'] }, world);
  expect(looks).toEqual(['spark-b']);
  await expect(memory.run({ ...INPUT, node: ['spark-c'] }, world)).rejects.toThrow(UserError);
});

it('is not as wanted where a node is away, or has not what is needed, and to be mended where its key is not known', async () => {
  expect((await memory.run(INPUT, worldWith(REFUSED).world)).exit).toBe(1);
  expect((await memory.run(INPUT, worldWith({ ...REFUSED, why: 'host-key-unknown' }).world)).exit).toBe(2);
  expect((await memory.run({ ...INPUT, need: 90 * 2 ** 30 }, worldWith().world)).exit).toBe(1);
  expect((await memory.run({ ...INPUT, need: 20 * 2 ** 30 }, worldWith().world)).exit).toBe(0);
});

it('goes on looking while it is watched, until somebody ends it', async () => {
  const ended = new AbortController();
  const { world, looks, told } = worldWith(undefined, ended.signal);
  const live = (update: Live): void => {
    told.push(update);
    if (told.length === 3) ended.abort();
  };
  const { report } = await memory.run({ node: ['spark-a'], watch: true }, { ...world, live });
  expect(told.map(({ kind }) => kind)).toEqual(['memory', 'memory', 'memory']);
  expect(looks.length).toBeGreaterThanOrEqual(3);
  expect(report.kind).toBe('memory');
});
