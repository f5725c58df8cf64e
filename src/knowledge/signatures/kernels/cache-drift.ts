import { headOf, nodesOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const tuning = pattern(
  ['AutoTuner', 'Autotun', 'autotun'],
  /\[?AutoTuner\]?:? ?Tuning (?<what>[\w:.]{1,200}): +(?<percent>\d{1,20})%|(?<begins>[Aa]utotun\w{0,80}(?: process)? (?:starts|begins|started|begin)|[Tt]uning (?:from scratch|started)|[Rr]unning (?:FlashInfer )?autotun\w{0,80})|(?<ends>[Aa]utotun\w{0,80}(?: process)? (?:ends|completed|done|finished))|(?<cold>(?:0 cache hits|[Cc]ache miss\w{0,80}|no (?:cached|cache) \w{1,80}|cold cache).{0,400})/,
);
const hit = pattern(
  [
    'cache hit for',
    'onfig cache hit',
    'cache hits',
    'from the cache',
    'from cache',
    'cached config',
    'Loaded autotune',
    'autotune cache',
  ],
  /(?<![\d.])(?:[1-9]\d{0,20} )?(?:[Cc]onfig )?cache hits?\b(?! rate)|[Dd]irectly load the compiled graph|[Ll]oad(?:ed|ing)? (?:\w{1,80} )*(?:from (?:the )?cache|autotune (?:cache|configs?))|[Uu]sing cached/,
);
const compiling = pattern(
  ['Compiling a graph', 'JIT', 'Building', 'building', 'Compiling', 'compiling', 'nvcc'],
  /^Compiling a graph for|JIT (?:compil|build)\w{1,80}|(?:[Cc]ompil|[Bb]uild)ing (?:kernel|extension|module|CUDA|\w{1,80} with nvcc|graph)|DeepGEMM.{0,400}(?:[Cc]ompil|warm)|^\[\d{1,20}\/\d{1,20}\] .{0,400}nvcc/,
);
const waits = pattern(
  [
    'No available shared memory broadcast',
    'Watchdog caught',
    'Connection closed by peer',
    'Application timeout',
    'monitored_barrier',
    'timed out',
  ],
  /No available shared memory broadcast block|Watchdog caught collective|Connection closed by peer|Application timeout caused pair closure|monitored_?[Bb]arrier|(?:barrier|collective|all_?reduce).{0,400}timed out/,
);

/** One rank tunes or compiles kernels that another has in its cache, and they fall out of step. */
export const cacheDrift: Signature = {
  name: 'cache-drift',
  causes: ['rank-local-kernel-cache-drift'],
  seenOn: 'vLLM 0.27 to 0.29 with FlashInfer 0.6.16 to 0.6.18, August and September 2026',
  source: 'vllm-project/vllm#52291, #57423, #54618; getainode/ainode#134; flashinfer autotuner.py',
  looks: [
    '[AutoTuner]: Tuning mxfp8_gemm: 100%|##########| 16/16 on one rank, and 0%| | 0/16 on another, then nothing',
  ],
  patterns: [tuning, hit, compiling, waits],
  match(view) {
    if (!severalNodes(view.evidence) || view.serves) return undefined;
    const states = nodesOf(view.evidence).map((node) => stateOf(view, node));
    const wait = view.find(waits)[0];
    const idle = wait !== undefined || view.stalled !== undefined;
    const busy = states.filter((one) => one.busy !== undefined);
    const done = states.filter((one) => one.busy === undefined && one.done !== undefined);
    const apart = busy.length > 0 && (done.length > 0 || unequal(busy));
    if (!apart || !idle) return undefined;
    const tuned = [...busy, ...done].some((one) => /[Tt]un/.test((one.busy ?? one.done)?.message ?? ''));
    const cached = states.filter((one) => one.hit !== undefined);
    if (!tuned && cached.length === 0) return undefined;
    // A cache that is warm on one side only is the other side's lack; without that word both have drifted.
    const cold =
      cached.length > 0 && cached.length < states.length ? states.filter((one) => one.hit === undefined) : [];
    const node = cold.length === 1 ? cold[0]?.node : undefined;
    return told(
      view,
      node,
      [...done, ...busy].flatMap((one) => one.hit ?? one.busy ?? one.done ?? []),
      wait,
      tuned,
    );
  },
};

type State = {
  readonly node: string;
  readonly busy: Found | undefined;
  readonly done: Found | undefined;
  readonly hit: Found | undefined;
};

function stateOf(view: View, node: string): State {
  const on = (found: Found) => found.node === node;
  const tunes = view.find(tuning).filter(on);
  const last = tunes.at(-1);
  const compiles = view.find(compiling).findLast(on);
  const warm = view.find(hit).find(on);
  const finished =
    last !== undefined && (last.groups['ends'] !== undefined || last.groups['percent'] === '100');
  const busy =
    last !== undefined && !finished ? last : last === undefined && warm === undefined ? compiles : undefined;
  return { node, busy, done: finished ? last : busy === undefined ? warm : undefined, hit: warm };
}

/** Different tunings, or different progress in the same one. */
function unequal(busy: readonly State[]): boolean {
  const marks = new Set(
    busy.map(({ busy: found }) => `${found?.groups['what']} ${found?.groups['percent']}`),
  );
  return busy.length > 1 && marks.size > 1;
}

function told(
  view: View,
  node: string | undefined,
  shown: readonly Found[],
  wait: Found | undefined,
  tuned: boolean,
): Match {
  const where = node ?? headOf(view.evidence) ?? 'one node';
  return {
    cause: 'rank-local-kernel-cache-drift',
    node,
    ...(node === undefined ? { atFault: 'both' } : {}),
    shown: [...shown.slice(0, 3), ...(wait === undefined ? [] : [wait])],
    title:
      node === undefined
        ? `The ranks on ${nodesOf(view.evidence).join(' and ')} fell out of step while they ${tuned ? 'tuned' : 'compiled'} kernels`
        : `${node} ${tuned ? 'tunes' : 'compiles'} kernels that the others have in their cache, and they wait in vain`,
    why: "Caches of kernels are each rank's own. A rank that finds its own filled skips steps in which the others want its part.",
    advice: [
      'Set VLLM_FLASHINFER_AUTOTUNE_DISTRIBUTED_SYNC: "0" in env of the recipe, or --no-enable-flashinfer-autotune in args of the engine.',
      `Or begin alike: empty the tuning cache on every node (rm -rf ~/.cache/vllm/flashinfer_autotune_cache), or copy it from ${where} to all.`,
    ],
    confidence: tuned ? 0.85 : 0.68,
    specificity: tuned ? 3 : 2,
  };
}
