import type { Found, Match, View } from '../signature.ts';
import { holdersIn, saysUnified } from './memory-readings.ts';

const LEAST_HOLDER_GIB = 2;

/** Somebody whom the log itself names as the holder of the memory. */
export function namedHolder(
  view: View,
  node: string,
  shown: readonly Found[],
  missed: string,
): Match | undefined {
  const named = holdersIn(view, node).find((one) => one.gib >= LEAST_HOLDER_GIB);
  if (named === undefined) return undefined;
  const who = named.name ?? `process ${named.pid}`;
  return {
    cause: 'leftover-process-holds-gpu-memory',
    node,
    shown: shown.includes(named.found) ? shown : [...shown, named.found],
    title: `${who} holds ${named.gib.toFixed(1)} GiB on ${node}, and the engine found too little left`,
    why: missed,
    advice: [
      `On ${node}: ps -o pid,user,lstart,args -p ${named.pid}`,
      `If nobody needs it: sudo kill ${named.pid}`,
    ],
    values: { pid: named.pid, holder: who },
    confidence: 0.92,
    specificity: 3,
  };
}

/** A process that a list of processes shows beside the failure. */
export function byRow(node: string, shown: readonly Found[], missed: string, running: Found): Match {
  const { pid = '', name = 'A process' } = running.groups;
  return {
    cause: 'leftover-process-holds-gpu-memory',
    node,
    shown: [...shown, running],
    title: `${name} (pid ${pid}) still runs on ${node}, and the engine found too little memory`,
    why: missed,
    advice: [`On ${node}: ps -o pid,user,lstart,args -p ${pid}`, `If nobody needs it: sudo kill ${pid}`],
    values: { pid, holder: name },
    confidence: 0.8,
    specificity: 3,
  };
}

/** Somebody holds it, and nothing says who. */
export function leftover(
  view: View,
  node: string,
  shown: readonly Found[],
  missed: string,
  confidence: number,
): Match {
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
    confidence,
    specificity: 2,
    alternatives: saysUnified(view, node)
      ? [{ cause: 'page-cache-hides-unified-memory', confidence: 0.2 }]
      : [],
  };
}

/** The page cache counts as taken for the GPU. */
export function cached(node: string, shown: readonly Found[], why: string, confidence: number): Match {
  return {
    cause: 'page-cache-hides-unified-memory',
    node,
    shown,
    title: `The page cache of ${node} hides memory that the GPU could have`,
    why,
    advice: [
      `On ${node}: sync && echo 3 | sudo tee /proc/sys/vm/drop_caches`,
      'firstlight up does that itself where it may use sudo; "buff/cache" of free -g then falls to a few GiB.',
    ],
    confidence,
    specificity: 2,
  };
}

/** Less is free than was asked for, and nobody explains it. */
export function nobody(node: string, shown: readonly Found[], why: string, confidence: number): Match {
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
    confidence,
    specificity: 2,
  };
}
