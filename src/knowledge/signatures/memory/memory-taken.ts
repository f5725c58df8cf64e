import type { Evidence } from '../../../domain/evidence.ts';
import { valueIf } from '../../../domain/facts.ts';
import { STAGES, type Stage } from '../../../domain/finding.ts';
import { gib } from '../../../domain/units.ts';
import { factsAfter, factsOf, nodesOf, peerOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { byRow, cached, leftover, namedHolder, nobody } from './memory-missing.ts';
import { hasLittleCache, holderWords, isUnified, memoryOwner, stopCommand } from './memory-owner.ts';
import {
  cacheIn,
  isGb10Size,
  PROFILING,
  READING_FORMS,
  readingsOf,
  SHORTAGE_FORMS,
  saysUnified,
  unexplained,
} from './memory-readings.ts';
import { shortage } from './memory-shortage.ts';

const cudaOom = pattern(
  [
    'CUDA error: out of memory',
    'CUDA driver error: out of memory',
    'CUDA_ERROR_OUT_OF_MEMORY',
    'cudaErrorMemoryAllocation',
    'CUBLAS_STATUS_ALLOC_FAILED',
    "'out of memory'",
    '[CUDA]: out of memory',
  ],
  /CUDA (?:driver )?error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|Cuda failure (?:\d{1,20} )?'out of memory'|\[CUDA\]: out of memory/,
);
const torchOom = pattern('CUDA out of memory', /CUDA out of memory\. Tried to allocate/);
const startCheck = pattern(
  'Free memory on device',
  /Free memory on device (?:\S{1,300} )?\((?<free>[\d.]{1,200})\/(?<total>[\d.]{1,200}) GiB\) on startup is less than desired GPU memory utilization \((?<fraction>[\d.]{1,200}), (?<need>[\d.]{1,200}) GiB\)/,
);
const unbalanced = pattern(
  'memory capacity is unbalanced',
  /The memory capacity is unbalanced(?:.{0,400}?pre_model_load_memory=(?<least>[\d.]{1,200}), local_gpu_memory=(?<local>[\d.]{1,200}))?/,
);
const setDevice = pattern(
  ['set_device', 'setDevice', '_cuda_init'],
  /torch\.cuda\.set_device\(|_cuda_setDevice\(|_cuda_init\(/,
);
/** A row of ps with an engine's process, where somebody printed it beside the failure. */
const psRow = pattern(
  ['VLLM::', 'sglang::', 'ray::', 'vllm serve', 'launch_server', 'llama-server', 'ollama'],
  /^(?:\S{1,300} +)?(?<pid>\d{2,8}) .{0,400}?(?<name>VLLM::\w{1,80}|sglang::\w{1,80}|ray::\w{1,80}|llama-server|ollama(?: runner)?|vllm serve|sglang\.launch_server)/,
);
const memGetInfo = pattern(['mem_get_info', 'cudaMemGetInfo'], /mem_get_info|cudaMemGetInfo/);

export const CUDA_OUT_OF_MEMORY = [cudaOom, torchOom] as const;
const SMALL_LACK_GIB = 6;
const LEAST_CACHE_GIB = 8;
const HIDDEN_GIB = 15;
/** More than an engine that ends gives back of its own before it has read weights. */
const BACK_GIB = 8;
/** From this share of the whole on, the wish is too large rather than the memory hidden. */
const NEARLY_ALL = 0.78;
const BEFORE_WEIGHTS = STAGES.indexOf('weights');

/** Memory is missing before any weight is read: somebody else has it, the page cache hides it, or a reserve keeps it. */
export const memoryTaken: Signature = {
  name: 'memory-taken',
  causes: [
    'leftover-process-holds-gpu-memory',
    'page-cache-hides-unified-memory',
    'insufficient-free-memory-at-startup',
    'gpu-memory-still-being-reclaimed',
    'vm-watermark-reserve-too-high',
    'driver-version-regression',
  ],
  seenOn: 'torch 2.11.0 on an H200, November 2026; vLLM 0.24 and SGLang 0.5 on GB10, July 2026',
  source:
    'captured; vllm-project/vllm#48140, v1/worker/utils.py and gpu_worker.py; SGLang distributed/bootstrap.py',
  looks: [
    'ValueError: Free memory on device cuda:0 (71.40/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB).',
    'torch.AcceleratorError: CUDA error: out of memory (at torch.cuda.set_device, before any weight)',
  ],
  patterns: [
    cudaOom,
    torchOom,
    startCheck,
    unbalanced,
    memGetInfo,
    setDevice,
    psRow,
    ...READING_FORMS,
    ...SHORTAGE_FORMS,
  ],
  match(view) {
    const early = [...view.find(cudaOom), ...view.find(torchOom)].filter((found) => isEarly(found.stage));
    const shown = [
      ...view.find(startCheck),
      ...view.find(unbalanced),
      ...view.find(PROFILING),
      ...early,
    ].toSorted((a, b) => a.line.at - b.line.at);
    const first = shown[0];
    return first === undefined ? undefined : decide(view, first, shown);
  },
};

function isEarly(stage: Stage): boolean {
  return STAGES.indexOf(stage) < BEFORE_WEIGHTS;
}

function decide(view: View, first: Found, all: readonly Found[]): Match {
  const { evidence } = view;
  const node = shortNode(evidence, first);
  const { need, free, total = unexplained(first.message)?.total } = first.groups;
  const owner = memoryOwner(evidence, node, {
    ...(need === undefined ? {} : { needBytes: Number(need) * 2 ** 30 }),
    ...(free === undefined ? {} : { freeBytes: Number(free) * 2 ** 30 }),
    ...(total === undefined ? {} : { gpuGib: total }),
  });
  const shown = all.filter((found) => found.rank === first.rank).slice(0, 3);
  const missed = sentence(first, node);
  if (owner.kind === 'holder') {
    const { holder, sumBytes } = owner;
    return {
      cause: 'leftover-process-holds-gpu-memory',
      node,
      shown,
      title: `${holder.name} holds ${gib(holder.bytes)} on ${node}, and the engine found too little left`,
      why: `${missed} Others hold ${gib(sumBytes)} there, most of it ${holderWords(holder)}.`,
      advice: [`On ${node}: ${stopCommand(holder)}`, 'firstlight up asks before it stops anything.'],
      values: { holder: holder.name, pid: String(holder.pid), bytes: String(holder.bytes) },
      confidence: owner.sure ? 0.97 : 0.8,
      specificity: 3,
    };
  }
  if (owner.kind === 'cache') {
    return cached(
      node,
      shown,
      `${missed} ${gib(owner.cachedBytes)} are page cache.`,
      owner.sure ? 0.92 : 0.7,
    );
  }
  return (
    namedHolder(view, node, shown, missed) ??
    shortage(view, { node, first, shown, missed, lack: lack(first), unified: unified(view, first, node) }) ??
    (owner.kind === 'nobody'
      ? (cameBack(view, first, node, shown, missed) ?? nobody(node, shown, missed, 0.6))
      : byText(view, first, node, shown, missed))
  );
}

/** The look after the failure finds what the engine missed, and nobody who would have held it: it was on its way back. */
function cameBack(
  view: View,
  first: Found,
  node: string,
  shown: readonly Found[],
  missed: string,
): Match | undefined {
  const bytes = freeNow(view, node);
  const { need, free } = first.groups;
  if (bytes === undefined || need === undefined || free === undefined) return undefined;
  const there = bytes / 2 ** 30;
  if (there < Number(need) || there < Number(free) + BACK_GIB) return undefined;
  return {
    cause: 'gpu-memory-still-being-reclaimed',
    node,
    shown,
    title: `The memory of what ended on ${node} was still on its way back`,
    why: `${missed} Right after the failure ${there.toFixed(1)} GiB are free, and nobody is seen to have held them.`,
    advice: ['firstlight up waits until memory no longer comes back, and starts again.'],
    values: { free: there.toFixed(1) },
    confidence: 0.78,
    specificity: 2,
    alternatives: [{ cause: 'insufficient-free-memory-at-startup', confidence: 0.15 }],
  };
}

/** What is free where the engine looked for it: the host's memory on unified nodes, else the emptiest GPU's own. */
function freeNow(view: View, node: string): number | undefined {
  const facts = factsAfter(view.evidence, node);
  const gpus = valueIf(facts?.gpus) ?? [];
  if (gpus.length === 0 || gpus.some((gpu) => gpu.unified)) return valueIf(facts?.memory)?.freeBytes;
  const free = gpus.flatMap((gpu) => valueIf(gpu.freeBytes) ?? []);
  return free.length === 0 ? undefined : Math.max(...free);
}

/** SGLang's balance check is raised where memory is plenty; short of it is another rank. */
function shortNode(evidence: Evidence, first: Found): string {
  const { least, local } = first.groups;
  if (least === undefined || local === undefined || nodesOf(evidence).length === 1) return first.node;
  return Number(least) < Number(local) ? (peerOf(evidence, first.node) ?? first.node) : first.node;
}

function sentence(first: Found, node: string): string {
  const { free, need, least, local, before, now } = first.groups;
  if (least !== undefined) {
    return `The ranks see very different amounts of free memory: ${least} GB and ${local} GB.`;
  }
  if (before !== undefined && now !== undefined)
    return `While the engine measured, free memory rose from ${before} to ${now} GiB.`;
  return free !== undefined && need !== undefined
    ? `The engine wanted ${need} GiB on ${node} and saw ${free} GiB free, before it read any weight.`
    : `The GPU of ${node} had no memory left when the engine began, before it read any weight.`;
}

/** Without a look at the node there is only what the log says. */
function byText(view: View, first: Found, node: string, shown: readonly Found[], missed: string): Match {
  const running = stillRunning(view, first, node);
  if (running !== undefined) return byRow(node, shown, missed, running);
  const gap = unexplained(first.message);
  // What was told of a job launched by hand is of the time when it failed.
  const told = view.evidence.services.length === 0 ? factsOf(view.evidence, node) : undefined;
  if (hasLittleCache(told)) return leftover(view, node, shown, missed, 0.6);
  if (gap !== undefined && gap.gib >= HIDDEN_GIB && (isGb10Size(gap.total) || unified(view, first, node)))
    return {
      ...cached(node, shown, `${missed} ${gap.gib.toFixed(1)} GiB belong to no process that is seen.`, 0.75),
      alternatives: [{ cause: 'leftover-process-holds-gpu-memory', confidence: 0.2 }],
    };
  const info = view.find(memGetInfo).some((found) => found.node === node && found.rank === first.rank);
  const { need, free, total } = first.groups;
  const shared = unified(view, first, node) || info;
  const cache = cacheIn(readingsOf(view, node));
  if (shared && cache?.cache !== undefined && cache.cache >= LEAST_CACHE_GIB)
    return cached(
      node,
      [...shown, cache.found],
      `${missed} ${cache.cache.toFixed(1)} GiB are page cache.`,
      0.9,
    );
  if (need !== undefined) {
    const share = Number(free) / Number(total);
    if (lack(first) < SMALL_LACK_GIB || share >= NEARLY_ALL) return nobody(node, shown, missed, 0.65);
    if (!shared) return leftover(view, node, shown, missed, 0.6);
    const both = share < 0.3 ? 0.55 : 0.7;
    return {
      ...cached(node, shown, missed, both),
      alternatives: [{ cause: 'leftover-process-holds-gpu-memory', confidence: 1 - both - 0.05 }],
    };
  }
  if (info) return shared ? cached(node, shown, missed, 0.65) : nobody(node, shown, missed, 0.55);
  return leftover(
    view,
    node,
    shown,
    missed,
    view.find(setDevice).some((found) => found.rank === first.rank) ? 0.75 : 0.6,
  );
}

/** A process of an engine in a list of processes, which is not one of those that speak in these logs. */
function stillRunning(view: View, first: Found, node: string): Found | undefined {
  const speaking = new Set(
    view
      .find(startCheck)
      .concat(first)
      .flatMap((found) => /pid=(\d+)/.exec(found.line.text)?.[1] ?? []),
  );
  return view
    .find(psRow)
    .find(
      (found) =>
        found.node === node && !speaking.has(found.groups['pid'] ?? '') && !/pid=/.test(found.line.text),
    );
}

function lack(first: Found): number {
  const { free, need } = first.groups;
  return need === undefined ? Number.POSITIVE_INFINITY : Number(need) - Number(free);
}

function unified(view: View, first: Found, node: string): boolean {
  return (
    isUnified(factsOf(view.evidence, node), first.groups['total']) ||
    isGb10Size(first.groups['total']) ||
    saysUnified(view, node)
  );
}
