import { inOrder, sameLog } from '../line-signature.ts';
import { peersOf } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const timedOut = pattern(
  [
    'RPC call to ',
    'execute_model timed out',
    'sample_tokens timed out',
    'atchdog timeout',
    'Execute model timed out',
    'ran out of time',
  ],
  /RPC call to (?<call>\w{1,80}) timed out|(?:execute_model|sample_tokens) timed out|[Ww]atchdog timeout \(/,
);
const compiles = pattern(
  [
    'begins to compile kernel',
    'completes to compile kernel',
    'Compiling a graph for',
    'JIT compil',
    'jit compil',
    'Just-in-time compil',
    'JIT-compil',
    'autotun',
    'Autotun',
    'Building JIT',
    'ninja: ',
    'nvcc ',
    'torch_inductor',
    'DeepGEMM warmup',
    'deep_gemm',
    'Tuning process',
    'Compiling and caching',
    'tvm_ffi',
    'cute.compile',
    'Compiling kernel',
    'flashinfer.jit',
    'Entering DeepGEMM JIT',
    'recompile',
  ],
  /(?<begin>begins to compile|JIT compil|[Jj]it compil|JIT-compil|Just-in-time compil|Building JIT|Compiling (?:a graph(?!.{0,200} takes )|and caching|kernel)|Entering DeepGEMM JIT|[Aa]utotun(?:e|ing) (?:begin|start|process|for)|Tuning process (?:begin|start)|^ninja: |\bnvcc .{0,600}-gencode|flashinfer\.jit\b.{0,600}(?:Loading|building|compil)|recompil)|(?<end>completes to compile|Compiling a graph .{0,200} takes |compiled in|compilation (?:took|finished)|Tuning process ends|[Aa]utotuning process ends)/,
);
const serves = pattern(
  ['Application startup complete', 'fired up and ready to roll'],
  /^(?:INFO: {1,8})?Application startup complete\.|The server is fired up and ready to roll/,
);
const waiting = pattern(
  'No available shared memory broadcast block found',
  /No available shared memory broadcast block found in (?<seconds>\d+) seconds/,
);

/** While it serves a new shape makes a rank compile a kernel, for longer than the engine waits for it. */
export const lateJit: Signature = {
  name: 'late-jit',
  causes: ['late-jit-exceeds-execute-timeout'],
  seenOn: 'vLLM 0.11 to 0.32 with TileLang and FlashInfer, SGLang 0.5',
  source:
    'vLLM v1/executor/multiproc_executor.py, envs.py; tilelang jit/kernel.py; flashinfer jit; SGLang scheduler watchdog',
  whileServing: true,
  patterns: [timedOut, compiles, serves, waiting],
  looks: [
    'TimeoutError: RPC call to execute_model timed out.',
    'TileLang begins to compile kernel `main` with `out_idx=[-1]`',
  ],
  match(view) {
    const over = inOrder([timedOut], view)[0];
    if (over === undefined || endedBefore(view, over)) return undefined;
    const begun = inTheWay(view, over);
    const compiler = begun[0];
    const waited = view.find(waiting).filter(({ node }) => node === over.node);
    if (compiler === undefined) return waited.length > 0 ? unproved(view, over, waited) : undefined;
    return {
      cause: 'late-jit-exceeds-execute-timeout',
      node: compiler.node,
      shown: [over, ...begun.slice(0, 2), ...waited.slice(-1)],
      title: `${compiler.node} compiled a kernel for longer than the engine waits`,
      why: 'A request of a new shape had a kernel built while serving; the other side took the silence for a death.',
      advice: ADVICE,
      confidence: 0.9,
      specificity: 3,
    };
  },
};

const ADVICE = [
  'Give it more time: VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=1800 in env of the recipe (SGLang: --watchdog-timeout 1800).',
  'Keep the caches of kernels on a disk that outlives the container, and send requests of all lengths once after the start.',
];

/** A rank that was gone when the other stopped waiting compiled nothing. */
function endedBefore({ evidence }: View, over: Found): boolean {
  return evidence.ranks.some(
    ({ node, ended }) =>
      node !== over.node && ended !== undefined && !ended.requested && ended.at < over.line.at,
  );
}

/** Compilations that the timeout fell into: begun while it served and not over yet, or known by their end alone. */
function inTheWay(view: View, over: Found): readonly Found[] {
  const lines = view.find(compiles);
  const ready = view.find(serves).findLast(({ line }) => line.at <= over.line.at);
  return lines.filter((found) => {
    if (found.groups['end'] !== undefined) return found.line.at >= over.line.at;
    const seconds = (over.line.at - found.line.at) / 1000;
    if (seconds < 0 || seconds >= 3600 || (ready !== undefined && found.line.at < ready.line.at))
      return false;
    const finished = lines.find(
      (other) =>
        other.groups['end'] !== undefined && sameLog(other, found) && other.line.line > found.line.line,
    );
    return finished === undefined || finished.line.at >= over.line.at;
  });
}

/** The engine itself says that somebody compiles or hangs: no more than a guess. */
function unproved(view: View, over: Found, waited: readonly Found[]): ReturnType<Signature['match']> {
  const peers = peersOf(view.evidence, over.node);
  const node = peers[0] ?? over.node;
  return {
    cause: 'late-jit-exceeds-execute-timeout',
    node,
    shown: [over, ...waited.slice(-1)],
    title: `${node} did not answer in time while it served, perhaps compiling a kernel`,
    why: 'The engine waited for a step that did not come; no log says that anything broke.',
    advice: [...ADVICE, `See whether the rank on ${node} still runs, and what it does: firstlight status`],
    confidence: 0.55,
    specificity: 1,
    alternatives: [{ cause: 'worker-died-head-still-healthy', confidence: 0.3 }],
  };
}
