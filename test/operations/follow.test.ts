import { Duplex } from 'node:stream';
import { expect, it } from 'vitest';
import type { UnreachableWhy } from '../../src/domain/command.ts';
import type { Event } from '../../src/domain/event.ts';
import type { Service } from '../../src/domain/plan.ts';
import { followAttempt } from '../../src/operations/follow.ts';
import { newRecorder } from '../../src/operations/recorder.ts';
import type { Verified } from '../../src/operations/verify.ts';
import type { Clock, World } from '../../src/operations/world.ts';
import type { Host, StreamOptions } from '../../src/remote/host.ts';
import { spark, sparkRecipe } from '../pretend/facts.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

/** A clock that goes on when somebody waits, and wakes those who listen. */
class PretendClock implements Clock {
  readonly ticks: ((now: number) => void)[] = [];
  #now = 1_000_000;
  now(): number {
    return this.#now;
  }
  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#now += milliseconds;
    for (const tick of this.ticks) tick(this.#now);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

type Rank = {
  readonly lines: readonly string[];
  readonly everySeconds?: number;
  readonly ends?: number;
  /** Its host is lost: what one connection after the other meets, the last one for ever. */
  readonly lost?: readonly UnreachableWhy[];
  /** Seconds after which its fabric link is down, and, where it comes back, up again. */
  readonly dark?: readonly [number, number?];
};

/** A server that says 200 to whatever is asked. */
class Answering extends Duplex {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    this.push('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    this.push(null);
    done();
  }
}

/** A rank's log: these lines, then the last of them again and again, or its end. */
function hostOf(node: string, rank: Rank, clock: PretendClock): Host {
  const ran = { kind: 'ran', code: 0, stdout: '', stderr: '', milliseconds: 0 } as const;
  const never = (): never => {
    throw new Error('nobody asks that here');
  };
  let tried = 0;
  return {
    node: { name: node, ssh: node },
    connect: async () => undefined,
    run: async () => ran,
    dial: () => new Answering(),
    leave: never,
    async stream(_command: unknown, { signal, stdout, stderrLine }: StreamOptions) {
      const text = rank.lines.map((line) => `${line}\n`).join('');
      if (tried === 0) stdout(Buffer.from(text));
      if (rank.ends !== undefined) {
        stderrLine(`X ${rank.ends} ${Buffer.byteLength(text)}`);
        return ran;
      }
      if (rank.lost !== undefined) {
        const why = rank.lost[Math.min(tried, rank.lost.length - 1)] ?? 'unknown';
        tried += 1;
        const failure = { kind: 'unreachable', why, sentence: why, remedy: '', text: '' } as const;
        return { kind: 'lost', failure };
      }
      const began = clock.now();
      const changes = (rank.dark ?? []).map((second, at) => ({ second, word: at === 0 ? 'down' : 'up' }));
      clock.ticks.push((now) => {
        while (changes[0] !== undefined && now - began >= (changes[0].second ?? 0) * 1000)
          stderrLine(`L ${changes.shift()?.word}`);
      });
      let next = clock.now();
      clock.ticks.push((now) => {
        if (rank.everySeconds === undefined || signal.aborted || now < next) return;
        next = now + rank.everySeconds * 1000;
        stdout(Buffer.from(`${rank.lines.at(-1)}\n`));
      });
      while (!signal.aborted) await new Promise((resolve) => setImmediate(resolve));
      throw signal.reason;
    },
  };
}

function serviceOf(rank: number, node: string): Service {
  return {
    name: `qwen-r${rank}`,
    node,
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'sglang',
    in: 'process',
    argv: ['sglang'],
    env: {},
    secretEnv: {},
    recipe: 'qwen',
    recipeDigest: '',
    effectiveDigest: '',
    edits: [],
    healthPort: 30000,
    servedName: 'qwen',
    address: rank === 0 ? '192.168.200.12' : '192.168.200.13',
  };
}

/** How following these two ends, and after how many seconds. */
async function followed(head: Rank, worker: Rank, proof?: Verified) {
  const clock = new PretendClock();
  const told: Event[] = [];
  const hosts = [hostOf('spark-a', head, clock), hostOf('spark-b', worker, clock)];
  const of = (name: string): Host =>
    hosts.find(({ node }) => node.name === name) ?? hostOf(name, head, clock);
  const world: World = {
    ...pretendWorld({
      signal: new AbortController().signal,
      live: () => undefined,
      onEvent: (event) => void told.push(event),
    }),
    hosts: { all: hosts, of, acceptHostKey: async () => undefined },
    clock,
  };
  const started = clock.now();
  const end = await followAttempt(
    world,
    newRecorder(world),
    {
      attempt: 1,
      engine: 'sglang',
      recipe: sparkRecipe(),
      services: [serviceOf(1, 'spark-b'), serviceOf(0, 'spark-a')],
      before: [spark('a'), spark('b')],
      verify: async () => {
        if (proof !== undefined) return proof;
        throw new Error('none of these ranks serves');
      },
    },
    () => undefined,
  );
  return { end, told, kind: end.kind, seconds: (clock.now() - started) / 1000 };
}

const BEGIN = '[2026-11-29 10:00:00 TP1] Init torch distributed begin.';
const RETRY =
  '[W1129 10:00:01.019854535 TCPStore.cpp:358] [c10d] TCP client failed to connect/validate to host 192.168.200.12:20000 - retrying (try=1, timeout=600000ms, delay=2000ms): Connection reset by peer';

it('an attempt is over seconds after a rank’s end, though another prints a line every two seconds', async () => {
  const head = { lines: [BEGIN, 'torch.distributed.DistNetworkError: The server socket'], ends: 137 };
  const { kind, seconds } = await followed(head, { lines: [BEGIN, RETRY], everySeconds: 2 });
  expect(kind).toBe('failed');
  expect(seconds).toBeLessThan(10);
});

it('an attempt is over when no rank moves on for too long, however much they print', async () => {
  const chatty = { lines: [BEGIN, RETRY], everySeconds: 2 };
  const { kind, seconds } = await followed(chatty, chatty);
  expect(kind).toBe('failed');
  expect(seconds).toBeGreaterThan(119);
  expect(seconds).toBeLessThan(130);
});

it('a fatal line whose rank does not end is waited out for half a minute', async () => {
  const fatal = 'RuntimeError: CUDA error: an illegal memory access was encountered';
  const { kind, seconds } = await followed(
    { lines: [BEGIN, fatal] },
    { lines: [BEGIN, RETRY], everySeconds: 2 },
  );
  expect(kind).toBe('failed');
  expect(seconds).toBeLessThan(40);
});

it('an attempt is over when a fabric link stays down while no rank moves on, and not when it comes back', async () => {
  const dark = await followed({ lines: [BEGIN, RETRY], everySeconds: 2 }, { lines: [BEGIN], dark: [20] });
  expect(dark.kind).toBe('failed');
  expect(dark.seconds).toBeGreaterThan(39);
  expect(dark.seconds).toBeLessThan(42);
  expect(dark.told).toContainEqual(
    expect.objectContaining({ type: 'note', text: expect.stringContaining('The fabric link of spark-b (') }),
  );
  const flaps = await followed({ lines: [BEGIN] }, { lines: [BEGIN], dark: [20, 30] });
  expect(flaps.seconds).toBeGreaterThan(119);
});

it('a host that stays lost is told by what those met who tried it anew, not by the connection that broke', async () => {
  const head = { lines: [BEGIN] };
  const worker = { lines: [BEGIN], lost: ['closed', 'closed', 'host-key-changed', 'closed'] } as const;
  const { end, seconds } = await followed(head, worker);
  expect(end).toMatchObject({
    kind: 'node-lost',
    node: 'spark-b',
    failure: { why: 'host-key-changed' },
  });
  expect(seconds).toBeLessThan(70);
});

it('a worker that answers serves, though its log has stopped, and that is told', async () => {
  const ready = '[2026-11-29 10:00:09] The server is fired up and ready to roll!';
  const chat = {
    kind: 'answered',
    answer: '204',
    reasoning: '',
    finish: 'stop',
    firstTokenSeconds: undefined,
    tokensPerSecond: undefined,
    promptTokens: undefined,
    outputTokens: undefined,
  } as const;
  const proof = { kind: 'proved', said: [], chat, speed: chat } as const;
  const { end, seconds, told } = await followed({ lines: [BEGIN, ready] }, { lines: [BEGIN] }, proof);
  expect(end).toMatchObject({ kind: 'serving', proof });
  expect(seconds).toBeGreaterThan(5);
  expect(told).toContainEqual(
    expect.objectContaining({
      type: 'note',
      node: 'spark-b',
      text: expect.stringContaining('The log of rank 1 on spark-b stopped in the rendezvous'),
    }),
  );
});
