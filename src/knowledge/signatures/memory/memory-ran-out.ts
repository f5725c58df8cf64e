import { valueIf } from '../../../domain/facts.ts';
import type { Stage } from '../../../domain/finding.ts';
import { factsAfter, factsOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { holderWords, isUnified, memoryOwner, stopCommand } from './memory-owner.ts';
import {
  cacheIn,
  holdersIn,
  isGb10Size,
  leastAvailable,
  NVRM_NO_MEMORY,
  READING_FORMS,
  readingsOf,
  saysUnified,
  unexplained,
} from './memory-readings.ts';
import { CUDA_OUT_OF_MEMORY } from './memory-taken.ts';

const captureFailed = pattern(
  ['Capture cuda graph failed', 'Capture CUDA graph failed'],
  /Capture (?:cuda|CUDA) graph failed: .{0,400}out of memory/i,
);
const sampler = pattern(
  'when warming up sampler with',
  /out of memory occurred when warming up (?:sampler|pooler) with (?<count>\d{1,20}) dummy requests/,
);
const capturing = pattern(
  [
    'Capturing CUDA graph',
    'Capturing batches',
    'Capturing cudagraph',
    'graph_capture',
    'capture_model',
    'cuda_graph_runner',
  ],
  /Capturing (?:CUDA graph|batches|cudagraph)|in (?:graph_capture|capture_model|_capture_graph|capture_one_batch_size)\b/,
);
const weightsDone = pattern(
  ['Loading weights took', 'Load weight end', 'Model loading took', 'Available KV cache memory'],
  /^Loading weights took |^Load weight end\.|^Model loading took |^Available KV cache memory/,
);
const prefill = pattern(
  ['Prefill out of memory', 'Decode out of memory', 'out of memory happened'],
  /(?:Prefill|Decode|Extend) out of memory\.|out of memory happened|Try to (?:lower your batch size|decrease --max-running)/,
);
const HIDDEN_GIB = 15;
const LEAST_CACHE_GIB = 8;

/** Memory runs out after weights began to load; the stage and what the node's log says of its memory tell for what. */
export const memoryRanOut: Signature = {
  name: 'memory-ran-out',
  causes: [
    'leftover-process-holds-gpu-memory',
    'page-cache-hides-unified-memory',
    'unified-memory-exhausted-driver-alloc',
    'too-many-sequences-for-memory',
    'cuda-graph-capture-oom',
    'unknown',
  ],
  seenOn: 'vLLM 0.24 and 0.25 on GB10, SGLang 0.5, July 2026',
  source:
    'torch c10/cuda/CUDACachingAllocator.cpp; vLLM v1/worker/gpu_model_runner.py; SGLang cuda_graph_runner.py; vllm-project/vllm#54200',
  looks: [
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB. GPU 0 has a total capacity of 121.69 GiB of which 1.10 GiB is free.',
    'RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests.',
  ],
  patterns: [
    ...CUDA_OUT_OF_MEMORY,
    captureFailed,
    sampler,
    capturing,
    weightsDone,
    prefill,
    NVRM_NO_MEMORY,
    ...READING_FORMS,
  ],
  match(view) {
    const sampled = view.find(sampler)[0];
    if (sampled !== undefined) return sequences(sampled, [sampled], 0.95);
    const late = [captureFailed, ...CUDA_OUT_OF_MEMORY, prefill]
      .flatMap((form) => view.find(form))
      .filter((found) => !['start', 'rendezvous'].includes(found.stage) || inGraphs(view, found))
      .toSorted((a, b) => a.line.at - b.line.at);
    const first = late[0];
    if (first === undefined) return undefined;
    return foreign(view, first) ?? driverAlloc(view, first) ?? bySelf(view, first, loaded(view, first));
  },
};

/** Whether the rank was at its graphs, told by the message, the line before or the traceback. */
function inGraphs(view: View, first: Found): boolean {
  if (first.stage === 'graphs' || /graph failed/i.test(first.message)) return true;
  // Of graphs that are done only a traceback speaks.
  const done = first.stage === 'warmup' || first.stage === 'serving';
  return view
    .find(capturing)
    .some(
      (found) =>
        found.rank === first.rank &&
        Math.abs(found.line.line - first.line.line) < 40 &&
        !(done && found.message.startsWith('Capturing')),
    );
}

function foreign(view: View, first: Found): Match | undefined {
  const total = unexplained(first.message)?.total;
  const owner = memoryOwner(view.evidence, first.node, total === undefined ? {} : { gpuGib: total });
  const { node } = first;
  if (owner.kind === 'holder') {
    return {
      cause: 'leftover-process-holds-gpu-memory',
      node,
      shown: [first],
      title: `${owner.holder.name} holds memory on ${node} that the engine needs`,
      why: `Memory ran out ${DOING[first.stage]}. Beside the engine there is ${holderWords(owner.holder)}.`,
      advice: [`On ${node}: ${stopCommand(owner.holder)}`, 'firstlight up asks before it stops anything.'],
      values: { holder: owner.holder.name, pid: String(owner.holder.pid), bytes: String(owner.holder.bytes) },
      confidence: owner.sure ? 0.9 : 0.7,
      specificity: 3,
    };
  }
  const named = holdersIn(view, node).find((one) => one.gib >= 4 && !isOwn(one.name, first));
  if (named !== undefined && owner.kind !== 'nobody') {
    const who = named.name ?? `Process ${named.pid}`;
    return {
      cause: 'leftover-process-holds-gpu-memory',
      node,
      shown: named.found.line === first.line ? [first] : [first, named.found],
      title: `${who} holds ${named.gib.toFixed(1)} GiB on ${node} that the engine needs`,
      why: `Memory ran out ${DOING[first.stage]}, and another process is named on the same GPU.`,
      advice: [`On ${node}: ps -o pid,user,lstart,args -p ${named.pid}`],
      values: { pid: named.pid, ...(named.name === undefined ? {} : { holder: named.name }) },
      confidence: 0.82,
      specificity: 3,
    };
  }
  return cache(view, first, owner.kind === 'cache' ? owner.sure : undefined);
}

/** The engine's own processes stand in such a table too, when it is printed while they run. */
function isOwn(name: string | undefined, first: Found): boolean {
  const pid = /pid=(\d+)/.exec(first.line.text)?.[1];
  return name !== undefined && pid !== undefined && name.includes(pid);
}

function cache(view: View, first: Found, seen: boolean | undefined): Match | undefined {
  const { node } = first;
  const missing = unexplained(first.message);
  const shared =
    isUnified(factsOf(view.evidence, node), missing?.total) ||
    saysUnified(view, node) ||
    isGb10Size(missing?.total);
  // What no process holds is page cache only where the look after the failure does not show how little of that there is.
  const cached = valueIf(factsAfter(view.evidence, node)?.memory)?.cachedBytes;
  const little = cached !== undefined && cached < LEAST_CACHE_GIB * 2 ** 30;
  const hidden =
    shared && !little && missing !== undefined && missing.gib >= HIDDEN_GIB ? missing.gib : undefined;
  const read = shared ? cacheIn(readingsOf(view, node)) : undefined;
  const told = read?.cache !== undefined && read.cache >= LEAST_CACHE_GIB ? read : undefined;
  const loading = ['start', 'rendezvous', 'weights'].includes(first.stage);
  if (!(seen !== undefined && loading) && hidden === undefined && told === undefined) return undefined;
  return {
    cause: 'page-cache-hides-unified-memory',
    node,
    shown: told === undefined ? [first] : [first, told.found],
    title: `The page cache of ${node} left too little memory ${loading ? 'for the weights' : 'for the engine'}`,
    why: `On unified memory the pages of the files that are read count as taken for the GPU${hidden === undefined ? '' : `; ${hidden.toFixed(1)} GiB belong to no process`}.`,
    advice: [
      `On ${node}: sync && echo 3 | sudo tee /proc/sys/vm/drop_caches, right before the launch`,
      'A loader that does not keep pages helps too: --safetensors-load-strategy eager (vLLM), --weight-loader-drop-cache-after-load (SGLang).',
    ],
    confidence: told !== undefined ? 0.85 : hidden !== undefined ? 0.75 : seen ? 0.65 : 0.55,
    specificity: told !== undefined || hidden !== undefined ? 3 : 2,
  };
}

/** The driver says itself that it got nothing, while the kernel still counts memory as available. */
function driverAlloc(view: View, first: Found): Match | undefined {
  const { node } = first;
  const said = view.find(NVRM_NO_MEMORY).find((found) => found.node === node);
  const readings = readingsOf(view, node);
  const available = leastAvailable(readings);
  const plenty = available?.available !== undefined && available.available > 8 ? available : undefined;
  if (said === undefined || inGraphs(view, first)) return undefined;
  return {
    cause: 'unified-memory-exhausted-driver-alloc',
    node,
    shown: [first, said, ...(plenty === undefined ? [] : [plenty.found])],
    title: `The driver on ${node} could not get memory ${DOING[first.stage]}`,
    why: `It needs pages that are free at once${plenty === undefined ? '' : `; the ${plenty.available?.toFixed(1)} GiB that count as available are not`}: page cache and fragments do not help it.`,
    advice: [
      'Lower memory.fraction in the recipe by 0.05, and leave more in memory.reserve.',
      `On ${node}, right before the launch: sync && echo 3 | sudo tee /proc/sys/vm/drop_caches; echo 1 | sudo tee /proc/sys/vm/compact_memory`,
    ],
    confidence: plenty === undefined ? 0.65 : 0.85,
    specificity: plenty === undefined ? 2 : 3,
    alternatives: [{ cause: 'page-cache-hides-unified-memory', confidence: 0.2 }],
  };
}

/** vLLM says nothing between the end of the files and the end of loading; what fails there is no longer the reading. */
function loaded(view: View, first: Found): boolean {
  return view
    .find(weightsDone)
    .some((found) => found.rank === first.rank && found.line.line < first.line.line);
}

function bySelf(view: View, first: Found, weightsRead: boolean): Match {
  const { node } = first;
  const stage = first.stage === 'weights' && weightsRead ? 'kv' : first.stage;
  const common = {
    node,
    shown: [first],
    why: `Memory ran out ${DOING[stage]}, and nobody else is seen to hold it.`,
  };
  if (inGraphs(view, first)) {
    return {
      ...common,
      why: `Memory ran out ${DOING.graphs}, and nobody else is seen to hold it.`,
      cause: 'cuda-graph-capture-oom',
      title: `${node} ran out of memory while it captured CUDA graphs`,
      advice: [
        'Lower memory.fraction in the recipe by 0.05: graphs take their memory beside the KV cache.',
        'Or capture for fewer sizes: a smaller sequences, or --enforce-eager (vLLM) and --disable-cuda-graph (SGLang), which are slower.',
      ],
      confidence: 0.85,
      specificity: 2,
    };
  }
  if (stage === 'weights') {
    return {
      ...common,
      cause: 'unknown',
      family: 'A',
      title: `${node} ran out of GPU memory while it read the weights; why is not known`,
      advice: [
        'See with firstlight plan whether the weights fit: more nodes, or a smaller quantisation, may be needed.',
        `On ${node}: free -g; nvidia-smi`,
      ],
      confidence: 0.5,
      specificity: 1,
      alternatives: [{ cause: 'page-cache-hides-unified-memory', confidence: 0.35 }],
    };
  }
  return sequences(first, [first], 0.65);
}

function sequences(first: Found, shown: readonly Found[], confidence: number): Match {
  const { node } = first;
  const count = first.groups['count'];
  return {
    cause: 'too-many-sequences-for-memory',
    node,
    shown,
    title: `${node} ran out of memory for the sequences it is to serve at once`,
    why:
      count === undefined
        ? `Memory ran out ${DOING[first.stage === 'weights' ? 'kv' : first.stage]}, and nobody else is seen to hold it.`
        : `It tried with ${count} requests at once, and their working memory is not there.`,
    advice: ['Set a smaller sequences in the recipe.'],
    ...(count === undefined ? {} : { values: { sequences: count } }),
    confidence,
    specificity: count === undefined ? 2 : 3,
  };
}

const DOING: Readonly<Record<Stage, string>> = {
  start: 'at the start',
  rendezvous: 'at the rendezvous',
  weights: 'while the weights were read',
  kv: 'while the KV cache was sized',
  graphs: 'while CUDA graphs were captured',
  warmup: 'during the warm-up',
  serving: 'while it served',
};
