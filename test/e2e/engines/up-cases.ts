import type { Event } from '../../../src/domain/event.ts';
import type { EngineKind } from './engine.ts';
import type { EnginePair, Host } from './pair.ts';

/** A failure that `firstlight up` meets, and what must come of it. */
export type UpCase = {
  readonly what: string;
  /** Lines of the recipe beside the usual ones. */
  readonly recipe?: string;
  /** Breaks it; what it hands back mends it. */
  readonly breaks?: (pair: EnginePair) => () => void;
  /** Breaks it while it goes on; mended as above. */
  readonly during?: {
    readonly when: (event: Event) => boolean;
    readonly act: (pair: EnginePair) => () => void;
  };
  /** What may be named. */
  readonly causes: readonly string[];
  /** The node at fault; undefined where it is none of them, `either` where each meets it. */
  readonly node: string | undefined;
  /** The engine's own words, in the first attempt's logs; undefined where none was launched, or none tells. */
  readonly quote: RegExp | undefined;
  readonly ends: 'serving' | 'not-serving';
  /** The remedy that is proved on the way; undefined where a person must mend it, after which `up` serves. */
  readonly remedy: string | undefined;
  /** Lines of the recipe once a person has mended it; the usual ones where it was no matter of the recipe. */
  readonly mended?: string;
  readonly only?: EngineKind;
  /** Left out in CI, where minutes count; `--full` has it there too. */
  readonly rare?: true;
};

const SHARD = '/srv/model/model-00002-of-00002.safetensors';
const LFS =
  'version https://git-lfs.github.com/spec/v1\noid sha256:4665b1d3f1b0d5f8a2f4f1f6c3d0a9f6c1c0d7f8\nsize 364840\n';
const MIB = 2 ** 20;
/** Where this is, the engine may begin. */
const BEGIN = '/srv/begin';
const GUARD = '^sh guard[.]sh';
/** A model that is heavy for its engine, and a limit under which the engine starts but the half of the model does not fit. */
const HEAVY: Readonly<Record<EngineKind, string>> = { torch: '--ballast 2', vllm: '--heavy --layers 4' };
const LIMIT_MIB: Readonly<Record<EngineKind, number>> = { torch: 420, vllm: 1500 };

/** When a rank has begun to read its weights. */
const loads =
  (rank: number) =>
  (event: Event): boolean =>
    event.type === 'rank-stage' && event.rank === rank && event.stage === 'weights';

/** A signal to every process of the engine on a host at once. */
export function signalEngine(pair: EnginePair, host: Host, signal: 'KILL' | 'STOP' | 'CONT'): void {
  // vLLM gives its processes titles of their own.
  pair.on(host, 'root', ['pkill', `-${signal}`, '-f', ' serv[e] /srv/|^VLLM::']);
}

/** Another file in place of the worker's second shard. */
function shard(change: string): (pair: EnginePair) => () => void {
  return (pair) => {
    pair.must('b', `cp ${SHARD} /srv/kept && ${change}`);
    return () => void pair.must('b', `cp /srv/kept ${SHARD}`);
  };
}

export const UP_CASES: readonly UpCase[] = [
  {
    what: "each host's own name on loopback, left to the engine",
    recipe: 'network: engine',
    causes: ['loopback-address-advertised'],
    node: 'either',
    quote: /127\.0\.[01]\.1/,
    ends: 'serving',
    remedy: 'use-node-addresses',
  },
  {
    what: 'an interface that the worker does not have',
    recipe: 'env: {GLOO_SOCKET_IFNAME: enp1s0f0np0}\nnetwork: engine',
    causes: ['wrong-socket-interface'],
    node: 'spark-b',
    quote: /enp1s0f0np0/,
    ends: 'serving',
    remedy: 'use-node-addresses',
  },
  {
    what: 'the rendezvous port taken on the head',
    breaks: (pair) => {
      pair.listen('a', 'aurora', 20000);
      return () => void pair.on('a', 'root', ['pkill', '-f', 'listen.20000']);
    },
    // Whoever holds it is somebody else's, and is left alone: the ranks meet elsewhere.
    causes: ['port-already-in-use'],
    node: 'spark-a',
    quote: undefined,
    ends: 'serving',
    remedy: 'other-port',
  },
  {
    what: 'the same rank twice, by the recipe',
    recipe: 'args: {vllm: [--node-rank, "0", --distributed-timeout-seconds, "12"]}',
    causes: ['duplicate-node-rank'],
    node: undefined,
    quote: /rank=0 |node_rank 0/,
    ends: 'serving',
    remedy: 'own-arguments',
  },
  {
    what: 'an argument that this engine does not know',
    recipe: 'args: {vllm: [--no-such-argument]}',
    causes: ['flag-unknown-to-this-version', 'flag-misspelled'],
    node: undefined,
    quote: /unrecognized arguments: --no-such-argument/,
    ends: 'serving',
    remedy: 'drop-flag',
  },
  {
    what: 'an argument of another engine',
    rare: true,
    recipe: 'args: {vllm: [--mem-fraction-static, "0.8"]}',
    causes: ['flag-of-other-engine'],
    node: undefined,
    quote: /unrecognized arguments: --mem-fraction-static/,
    ends: 'serving',
    remedy: 'drop-flag',
  },
  {
    what: 'the model missing on the worker',
    rare: true,
    breaks: (pair) => {
      pair.must('b', 'mv /srv/model /srv/away');
      return () => void pair.must('b', 'mv /srv/away /srv/model');
    },
    causes: ['model-path-missing-on-worker'],
    node: 'spark-b',
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
  {
    what: 'a shard of the worker that is an LFS pointer',
    rare: true,
    breaks: shard(`printf '%s' '${LFS}' >${SHARD}`),
    causes: ['weights-are-lfs-pointers'],
    node: 'spark-b',
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
  {
    what: 'a shard of the worker that is cut short',
    breaks: shard(`truncate -s 200000 ${SHARD}`),
    causes: ['weights-truncated'],
    node: 'spark-b',
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
  {
    what: 'a tensor size that does not divide the heads',
    rare: true,
    breaks: (pair) => {
      const heads = (from: number, to: number) => (): void => {
        for (const host of ['a', 'b'] as const)
          pair.must(
            host,
            `sed -i 's/"num_attention_heads": ${from}/"num_attention_heads": ${to}/' /srv/model/config.json`,
          );
      };
      heads(4, 3)();
      return heads(3, 4);
    },
    causes: ['tp-size-not-divisible'],
    node: undefined,
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
  {
    what: 'a context longer than the model has',
    rare: true,
    recipe: 'context: 16384',
    causes: ['context-longer-than-model'],
    node: 'either',
    quote: /max_model_len \(16384\)/,
    ends: 'serving',
    remedy: 'shorter-context',
  },
  {
    what: 'a context longer than the cache holds',
    recipe: 'context: 4096\nargs: {vllm: [--kv-cache-memory-bytes, "700000"]}',
    causes: ['kv-cache-too-small-for-max-len'],
    node: 'either',
    quote: /max seq len \(4096\)/,
    ends: 'serving',
    remedy: 'shorter-context',
  },
  {
    what: 'the home of the worker full before the launch',
    rare: true,
    breaks: (pair) => {
      pair.must(
        'b',
        'mkdir -p /srv/small && mount -t tmpfs -o size=256k,mode=777 tmpfs /srv/small && for size in 4096 1; do dd if=/dev/zero bs=$size 2>/dev/null >>/srv/small/filler; done; mv /srv/home/aurora/.firstlight /srv/home/aurora/.away 2>/dev/null; mkdir -p /srv/home/aurora/.firstlight && mount --bind /srv/small /srv/home/aurora/.firstlight',
      );
      return () =>
        void pair.must(
          'b',
          'umount /srv/home/aurora/.firstlight && umount /srv/small; rmdir /srv/home/aurora/.firstlight; mv /srv/home/aurora/.away /srv/home/aurora/.firstlight 2>/dev/null; true',
        );
    },
    causes: ['disk-full'],
    node: 'spark-b',
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
  {
    what: 'the disk of the worker full while it writes its cache',
    recipe: 'env: {VLLM_CACHE_ROOT: /srv/cache}',
    breaks: (pair) => {
      pair.must('a', 'mkdir -p /srv/cache && chmod 777 /srv/cache');
      pair.must('b', 'mkdir -p /srv/cache && mount -t tmpfs -o size=64k,mode=777 tmpfs /srv/cache');
      return () => void pair.must('b', 'umount /srv/cache && chmod 777 /srv/cache');
    },
    causes: ['disk-full'],
    node: 'spark-b',
    quote: /iostream error|unexpected pos|PytorchStreamWriter failed/,
    ends: 'not-serving',
    remedy: undefined,
    only: 'torch',
  },
  {
    what: 'a package of the worker that is too old',
    recipe: 'env: {PYTHONPATH: /srv/old}',
    breaks: (pair) => {
      pair.must('b', `ln -s ${pair.engine.old ?? 'nothing'} /srv/old`);
      return () => void pair.must('b', 'rm /srv/old');
    },
    causes: ['tokenizers-too-old', 'transformers-too-old'],
    node: 'spark-b',
    quote: /tokenizers/,
    ends: 'not-serving',
    remedy: undefined,
    only: 'vllm',
  },
  {
    what: 'a limit of memory that the weights do not fit under',
    recipe: `path: /srv/heavy\nmemory: {reserve: 1GiB, guard: 1MiB}\nenv: {ENGINE_WAIT_FILE: ${BEGIN}}`,
    breaks: (pair) => {
      pair.must('a', `touch ${BEGIN}`);
      for (const host of ['a', 'b'] as const)
        pair.must(
          host,
          `python3 /srv/tiny-model.py /srv/heavy qwen3 --context 8192 ${HEAVY[pair.engine.kind]}`,
        );
      const limit = pair.limitMemory('b', LIMIT_MIB[pair.engine.kind] * MIB);
      const release = setInterval(() => {
        if (limit.kills() > 0) pair.on('b', 'root', ['pkill', '-CONT', '-f', GUARD]);
      }, 200);
      return () => {
        clearInterval(release);
        const kills = limit.kills();
        limit.lift();
        pair.on('b', 'root', ['pkill', '-CONT', '-f', GUARD]);
        for (const host of ['a', 'b'] as const) pair.must(host, `rm -f ${BEGIN}`);
        if (kills === 0) throw new Error('the kernel has killed nothing under the limit');
      };
    },
    // The kernel must come before the guard, and which of the two is faster hangs on what else the machine does: the
    // guard is held from before the worker's first byte until the kernel has ended something.
    during: {
      when: (event) => event.type === 'guard' && event.node === 'spark-b' && event.guard.state === 'guards',
      act: (pair) => {
        pair.must('b', `pkill -STOP -f '${GUARD}'; touch ${BEGIN}`);
        return () => undefined;
      },
    },
    causes: ['oom-killer-during-weight-load'],
    node: 'spark-b',
    // Nothing but the counter says so.
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
  {
    what: 'the worker ended with KILL while it loads',
    rare: true,
    recipe: 'env: {ENGINE_LOAD_SECONDS: "6"}',
    during: {
      when: loads(1),
      act: (pair) => {
        signalEngine(pair, 'b', 'KILL');
        return () => undefined;
      },
    },
    causes: ['worker-died-head-still-healthy'],
    node: 'spark-b',
    quote: undefined,
    ends: 'serving',
    remedy: 'launch-anew',
  },
  {
    what: 'the head ended with KILL while it loads',
    rare: true,
    recipe: 'env: {ENGINE_LOAD_SECONDS: "6"}',
    during: {
      when: loads(0),
      act: (pair) => {
        signalEngine(pair, 'a', 'KILL');
        return () => undefined;
      },
    },
    causes: ['head-ended-from-outside'],
    node: 'spark-a',
    quote: undefined,
    ends: 'serving',
    remedy: 'launch-anew',
  },
  {
    what: 'the fabric cut while it loads',
    rare: true,
    recipe: 'env: {ENGINE_LOAD_SECONDS: "4"}\nargs: {vllm: [--distributed-timeout-seconds, "12"]}',
    during: {
      when: loads(0),
      act: (pair) => {
        pair.fabric('down');
        return () => pair.fabric('up');
      },
    },
    causes: ['fabric-link-down'],
    node: 'spark-b',
    quote: undefined,
    ends: 'not-serving',
    remedy: undefined,
  },
];
