import type { Evidence } from '../../domain/evidence.ts';
import { STAGES, type Stage } from '../../domain/finding.ts';
import { gib } from '../../domain/units.ts';
import { holderWords, isUnified, memoryOwner, stopCommand } from './memory-owner.ts';
import { factsOf, nodesOf, peerOf } from './scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from './signature.ts';

const cudaOom = pattern('CUDA error: out of memory', /CUDA error: out of memory/);
const torchOom = pattern('CUDA out of memory', /CUDA out of memory\. Tried to allocate/);
const startCheck = pattern(
  'Free memory on device',
  /Free memory on device \S+ \((?<free>[\d.]+)\/(?<total>[\d.]+) GiB\) on startup is less than desired GPU memory utilization \((?<fraction>[\d.]+), (?<need>[\d.]+) GiB\)/,
);
const unbalanced = pattern(
  'The memory capacity is unbalanced',
  /The memory capacity is unbalanced.*?pre_model_load_memory=(?<least>[\d.]+), local_gpu_memory=(?<local>[\d.]+)/,
);
const setDevice = pattern(
  ['set_device', 'setDevice', '_cuda_init'],
  /torch\.cuda\.set_device\(|_cuda_setDevice\(|_cuda_init\(/,
);
const memGetInfo = pattern(['mem_get_info', 'cudaMemGetInfo'], /mem_get_info|cudaMemGetInfo/);
/** A row of nvidia-smi's process table, where somebody printed it into the log. */
const holderRow = pattern(
  'MiB |',
  /^\|\s+\d+\s+\S+\s+\S+\s+(?<pid>\d+)\s+[CG+]+\s+(?<name>\S.*?)\s+(?<mib>\d+)MiB \|$/,
);
const namedPid = pattern(' memory in use', /Process (?<pid>\d+) has (?<gib>[\d.]+) GiB memory in use/);

export const CUDA_OUT_OF_MEMORY = [cudaOom, torchOom] as const;
export const NAMED_PID = namedPid;
const SMALL_LACK_GIB = 6;
const BEFORE_WEIGHTS = STAGES.indexOf('weights');

/** Memory is missing before any weight is read: somebody else has it, or the page cache hides it. */
export const memoryTaken: Signature = {
  name: 'memory-taken',
  causes: [
    'leftover-process-holds-gpu-memory',
    'page-cache-hides-unified-memory',
    'insufficient-free-memory-at-startup',
  ],
  seenOn: 'torch 2.11.0 on an H200, November 2026; vLLM 0.24 and SGLang 0.5 on GB10, July 2026',
  source: 'captured; vllm-project/vllm#48140',
  patterns: [cudaOom, torchOom, startCheck, unbalanced, memGetInfo, setDevice, holderRow, namedPid],
  match(view) {
    const early = [...view.find(cudaOom), ...view.find(torchOom)].filter((found) => isEarly(found.stage));
    const shown = [...view.find(startCheck), ...view.find(unbalanced), ...early].toSorted(
      (a, b) => a.line.at - b.line.at,
    );
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
  const { need, free } = first.groups;
  const owner = memoryOwner(evidence, node, {
    ...(need === undefined ? {} : { needBytes: Number(need) * 2 ** 30 }),
    ...(free === undefined ? {} : { freeBytes: Number(free) * 2 ** 30 }),
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
  if (owner.kind === 'nobody') return nobody(node, shown, missed);
  return byText(view, first, node, shown, missed);
}

/** SGLang's balance check is raised where memory is plenty; short of it is another rank. */
function shortNode(evidence: Evidence, first: Found): string {
  const { least, local } = first.groups;
  if (least === undefined || local === undefined || nodesOf(evidence).length === 1) return first.node;
  return Number(least) < Number(local) ? (peerOf(evidence, first.node) ?? first.node) : first.node;
}

function sentence(first: Found, node: string): string {
  const { free, need, least, local } = first.groups;
  if (least !== undefined) {
    return `The ranks see very different amounts of free memory: ${least} GB and ${local} GB.`;
  }
  return free !== undefined && need !== undefined
    ? `The engine wanted ${need} GiB on ${node} and saw ${free} GiB free, before it read any weight.`
    : `The GPU of ${node} had no memory left when the engine began, before it read any weight.`;
}

/** Without a look at the node there is only what the log says. */
function byText(view: View, first: Found, node: string, shown: readonly Found[], missed: string): Match {
  const onNode = (found: Found) => found.node === node;
  const row = view.find(holderRow).find((found) => onNode(found) && Number(found.groups['mib']) >= 2048);
  const pid = view.find(namedPid).find((found) => onNode(found) && Number(found.groups['gib']) >= 2);
  const named = row ?? pid;
  if (named !== undefined) {
    const who = named.groups['name'] ?? `process ${named.groups['pid']}`;
    const size = named.groups['gib'] ?? (Number(named.groups['mib'] ?? 0) / 1024).toFixed(1);
    return {
      cause: 'leftover-process-holds-gpu-memory',
      node,
      shown: row ? [...shown, row] : shown,
      title: `${who} holds ${Number(size).toFixed(1)} GiB on ${node}, and the engine found too little left`,
      why: missed,
      advice: [
        `On ${node}: ps -o pid,user,lstart,args -p ${named.groups['pid']}`,
        `If nobody needs it: sudo kill ${named.groups['pid']}`,
      ],
      values: { pid: named.groups['pid'] ?? '', holder: who },
      confidence: 0.9,
      specificity: 3,
    };
  }
  const info = view.find(memGetInfo).some((found) => onNode(found) && found.rank === first.rank);
  const startChecked = first.groups['need'] !== undefined;
  if (startChecked || info) {
    const unified = isUnified(factsOf(view.evidence, node)) || isGb10(first.groups['total']) || info;
    // So little can have many reasons: a reserve of the kernel, a new driver, a desktop.
    if (lack(first) < SMALL_LACK_GIB) return { ...nobody(node, shown, missed), confidence: 0.45 };
    return unified ? cached(node, shown, missed, 0.6) : nobody(node, shown, missed);
  }
  return {
    cause: 'leftover-process-holds-gpu-memory',
    node,
    shown,
    title: `Something else holds the GPU memory of ${node}`,
    why: missed,
    advice: [
      `On ${node}: nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv`,
      'firstlight up looks for the holder and asks before it stops anything.',
    ],
    confidence: view.find(setDevice).some((found) => found.rank === first.rank) ? 0.75 : 0.55,
    specificity: 2,
  };
}

function lack(first: Found): number {
  const { free, need } = first.groups;
  return need === undefined ? Number.POSITIVE_INFINITY : Number(need) - Number(free);
}

/** GB10 shows 119.7 to 121.7 GiB; no discrete GPU of today has that size. */
function isGb10(totalGib: string | undefined): boolean {
  const total = Number(totalGib);
  return total > 117 && total < 123;
}

function cached(node: string, shown: readonly Found[], why: string, confidence: number): Match {
  return {
    cause: 'page-cache-hides-unified-memory',
    node,
    shown,
    title: `The page cache of ${node} hides memory that the GPU could have`,
    why,
    advice: [`On ${node}: sync && echo 3 | sudo tee /proc/sys/vm/drop_caches`],
    confidence,
    specificity: 2,
  };
}

function nobody(node: string, shown: readonly Found[], why: string): Match {
  return {
    cause: 'insufficient-free-memory-at-startup',
    node,
    shown,
    title: `${node} has less free memory than the engine asked for`,
    why,
    advice: [
      `On ${node}: free -g; nvidia-smi`,
      'Lower memory.fraction in the recipe if the model still fits then.',
    ],
    confidence: 0.6,
    specificity: 2,
  };
}
