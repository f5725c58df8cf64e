import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Command, Ran } from '../../src/domain/command.ts';
import { type Holder, type ReachedFacts, valueIf } from '../../src/domain/facts.ts';
import type { Service } from '../../src/domain/plan.ts';
import { lookAtMemory } from '../../src/operations/look.ts';
import { orphanSteps } from '../../src/planning/orphan-step.ts';
import { orphanRanks } from '../../src/planning/our-ranks.ts';
import type { Host } from '../../src/remote/host.ts';
import { startRank, stopRank } from '../../src/remote/rank-runner.ts';

const home = mkdtempSync(join(tmpdir(), 'fl-orphans-'));
const node = { name: 'here', ssh: 'here' };
const { signal } = new AbortController();
const held: number[] = [];
afterAll(() => {
  for (const pid of held)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended, as it should.
    }
  rmSync(home, { recursive: true, force: true });
});

/** This very machine as a host: real processes, real /proc, a home of its own. */
function run(command: Command, stdout: (chunk: Buffer) => void = () => undefined): Promise<Ran> {
  return new Promise((resolve) => {
    const [program = 'sh', ...args] = command.argv.map(String);
    const child = spawn(program, args, {
      env: { PATH: process.env['PATH'], HOME: home, FIRSTLIGHT_ROOT: '' },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const texts = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      texts.stdout += chunk.toString();
      stdout(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      texts.stderr += chunk.toString();
    });
    child.on('close', (code) => resolve({ kind: 'ran', code: code ?? 255, milliseconds: 0, ...texts }));
    child.stdin.end(command.stdin ?? '');
  });
}
const host: Host = {
  node,
  connect: async () => undefined,
  run: (command) => run(command),
  stream: (command, options) => run(command, options.stdout),
  leave: async () => undefined,
  dial: () => {
    throw new Error('nothing is dialled');
  },
};

async function seen(): Promise<ReachedFacts> {
  const hosts = { all: [host], of: () => host, acceptHostKey: async () => undefined };
  const clock = { now: () => Date.now(), wait: async () => undefined };
  const [facts] = await lookAtMemory({ hosts, clock, signal }, [node]);
  if (!facts?.reached) throw new Error('not reached');
  return facts;
}

/** A server and, in a session of its own, an engine core that holds 300 MiB: as vLLM's outlives its API server. */
const CORE =
  'const b = Buffer.alloc(300 * 2 ** 20, 1); console.log("core up"); setInterval(() => b[0], 1e6);';
const SERVER = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(CORE)}], { detached: true, stdio: 'inherit' }); setInterval(() => {}, 1e6);`;

async function rankWithCore(name: string): Promise<{ readonly core: number; readonly folder: string }> {
  const service: Service = {
    name,
    node: 'here',
    rank: 0,
    role: 'head',
    engine: 'vllm',
    in: 'process',
    argv: [process.execPath, '-e', SERVER],
    env: {},
    secretEnv: {},
    recipe: 'tiny',
    recipeDigest: 'd1',
    effectiveDigest: 'd2',
    edits: [],
    servedName: 'tiny',
  };
  const started = await startRank(
    host,
    service,
    { run: '3', attempt: 1, startedAt: '2026-11-29T10:00:00Z' },
    { signal },
  );
  expect(started).toMatchObject({ kind: 'ran', code: 0 });
  const machines = join(home, '.firstlight');
  const [machine = ''] = readdirSync(machines);
  const folder = join(machines, machine, 'ranks', name);
  while (!readFileSync(join(folder, 'log'), 'utf8').includes('core up'))
    await new Promise((go) => setTimeout(go, 20));
  const server = pidIn(join(folder, 'engine'));
  const core = readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map(Number)
    .find((pid) => parentOf(pid) === server);
  if (core === undefined) throw new Error('no core');
  held.push(core);
  return { core, folder };
}

function pidIn(file: string): number {
  return Number(readFileSync(file, 'utf8').split(' ')[0]);
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

function holderOf(facts: ReachedFacts, pid: number): Holder | undefined {
  return (valueIf(facts.holders) ?? []).find((holder) => holder.pid === pid);
}

async function killServer(folder: string): Promise<void> {
  const [runner, server] = [pidIn(join(folder, 'runner')), pidIn(join(folder, 'engine'))];
  process.kill(runner, 'SIGKILL');
  process.kill(server, 'SIGKILL');
  while ([runner, server].some((pid) => parentOf(pid) !== undefined))
    await new Promise((go) => setTimeout(go, 20));
}

it('an engine core whose server and runner were killed is seen as left by its rank, and ended by name', async () => {
  const { core, folder } = await rankWithCore('tiny-r0');
  const first = await seen();
  const text = JSON.stringify([core, first.holders], undefined, 1);
  expect(holderOf(first, core)?.owner, text).toEqual({ kind: 'rank', name: 'tiny-r0' });
  await killServer(folder);
  const facts = await seen();
  expect(holderOf(facts, core)?.owner).toMatchObject({
    kind: 'rank',
    name: 'tiny-r0',
    orphan: { why: 'its rank has ended and left it behind', processes: [{ pid: core }] },
  });
  expect(orphanRanks([facts]).map(({ record }) => record.name)).toEqual(['tiny-r0']);
  expect(orphanSteps(facts)).toEqual([]);
  expect(await stopRank(host, 'tiny-r0', { graceSeconds: 1 }, { signal })).toMatchObject({ code: 0 });
  expect(holderOf(await seen(), core)).toBeUndefined();
});

it('one whose record is gone as well is ended by a step that names its process, and nothing else is touched', async () => {
  const { core, folder } = await rankWithCore('lost-r0');
  await killServer(folder);
  rmSync(folder, { recursive: true });
  // Somebody's own, started alike, without the mark.
  const own = spawn(process.execPath, ['-e', CORE], { stdio: ['ignore', 'pipe', 'ignore'] });
  await new Promise((go) => own.stdout?.once('data', go));
  if (own.pid !== undefined) held.push(own.pid);
  const facts = await seen();
  const [step, ...more] = orphanSteps(facts);
  expect(more).toEqual([]);
  if (step === undefined) throw new Error('no step');
  expect(step).toMatchObject({ needsConsent: false, title: 'End what our rank lost-r0 left: 1 process' });
  expect(await run(step.command)).toMatchObject({ code: 0 });
  const after = await seen();
  expect(holderOf(after, core)).toBeUndefined();
  expect(own.pid !== undefined && holderOf(after, own.pid)?.owner.kind).not.toBe('rank');
  expect(own.pid !== undefined && holderOf(after, own.pid)).toBeDefined();
});
