import type { Stage } from '../../domain/finding.ts';
import { holderWords, memoryOwner, stopCommand } from './memory-owner.ts';
import { CUDA_OUT_OF_MEMORY, NAMED_PID } from './memory-taken.ts';
import { type Found, type Match, pattern, type Signature, type View } from './signature.ts';

const captureFailed = pattern(
  ['Capture cuda graph failed', 'Capture CUDA graph failed'],
  /Capture (?:cuda|CUDA) graph failed: .*out of memory/i,
);

const weightsDone = pattern(
  ['Loading weights took', 'Load weight end'],
  /^Loading weights took |^Load weight end\./,
);

/** Memory runs out after weights began to load; the stage tells for what. */
export const memoryRanOut: Signature = {
  name: 'memory-ran-out',
  causes: [
    'leftover-process-holds-gpu-memory',
    'page-cache-hides-unified-memory',
    'too-many-sequences-for-memory',
    'cuda-graph-capture-oom',
    'unknown',
  ],
  seenOn: 'vLLM 0.24 and 0.25 on GB10, SGLang 0.5, July 2026',
  source: 'torch c10/cuda/CUDACachingAllocator.cpp',
  patterns: [...CUDA_OUT_OF_MEMORY, NAMED_PID, captureFailed, weightsDone],
  match(view) {
    const late = [captureFailed, ...CUDA_OUT_OF_MEMORY]
      .flatMap((form) => view.find(form))
      .filter((found) => !['start', 'rendezvous'].includes(found.stage))
      .toSorted((a, b) => a.line.at - b.line.at);
    const first = late[0];
    return first === undefined ? undefined : (foreign(view, first) ?? bySelf(first, loaded(view, first)));
  },
};

function foreign(view: View, first: Found): Match | undefined {
  const owner = memoryOwner(view.evidence, first.node);
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
  const named = view
    .find(NAMED_PID)
    .find((found) => found.line === first.line && Number(found.groups['gib']) >= 4);
  if (named !== undefined && owner.kind !== 'nobody') {
    const pid = named.groups['pid'] ?? '';
    return {
      cause: 'leftover-process-holds-gpu-memory',
      node,
      shown: [first],
      title: `Process ${pid} holds ${Number(named.groups['gib']).toFixed(1)} GiB on ${node} that the engine needs`,
      why: `Memory ran out ${DOING[first.stage]}, and CUDA names another process on the same GPU.`,
      advice: [`On ${node}: ps -o pid,user,lstart,args -p ${pid}`],
      values: { pid },
      confidence: 0.8,
      specificity: 3,
    };
  }
  if (owner.kind === 'cache' && first.stage === 'weights') {
    return {
      cause: 'page-cache-hides-unified-memory',
      node,
      shown: [first],
      title: `The page cache of ${node} left too little memory for the weights`,
      why: 'On unified memory the pages of the files that are read count as taken for the GPU.',
      advice: [`On ${node}: sync && echo 3 | sudo tee /proc/sys/vm/drop_caches`],
      confidence: owner.sure ? 0.65 : 0.55,
      specificity: 2,
    };
  }
  return undefined;
}

/** vLLM says nothing between the end of the files and the end of loading; what fails there is no longer the reading. */
function loaded(view: View, first: Found): boolean {
  return view
    .find(weightsDone)
    .some((found) => found.rank === first.rank && found.line.line < first.line.line);
}

function bySelf(first: Found, weightsRead: boolean): Match {
  const { node } = first;
  const stage = first.stage === 'weights' && weightsRead ? 'kv' : first.stage;
  const common = {
    node,
    shown: [first],
    why: `Memory ran out ${DOING[stage]}, and nobody else is seen to hold it.`,
  };
  if (stage === 'weights') {
    return {
      ...common,
      cause: 'unknown',
      title: `${node} ran out of GPU memory while it read the weights; why is not known`,
      advice: [
        'See with firstlight plan whether the weights fit: more nodes, or a smaller quantisation, may be needed.',
        `On ${node}: free -g; nvidia-smi`,
      ],
      confidence: 0.5,
      specificity: 1,
    };
  }
  if (stage === 'graphs') {
    return {
      ...common,
      cause: 'cuda-graph-capture-oom',
      title: `${node} ran out of memory while it captured CUDA graphs`,
      advice: ['Lower memory.fraction in the recipe by 0.05: graphs take their memory beside the KV cache.'],
      confidence: 0.8,
      specificity: 2,
    };
  }
  return {
    ...common,
    cause: 'too-many-sequences-for-memory',
    title: `${node} ran out of memory for the sequences it is to serve at once`,
    advice: ['Set a smaller sequences in the recipe.'],
    confidence: 0.65,
    specificity: 2,
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
