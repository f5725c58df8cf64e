import type { RankEvidence } from '../../../domain/evidence.ts';
import { memoryLasted } from '../host/killed-from-outside.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { isCompiler, KERNEL_OOM, victimOf } from './host-memory.ts';
import { cacheIn, READING_FORMS, type Reading, readingsOf } from './memory-readings.ts';
import { CUDA_OUT_OF_MEMORY } from './memory-taken.ts';

const killed = pattern(
  [
    'exit code: -9',
    'exitcode: -9',
    'exitcode : -9',
    'exit code -9',
    'SIGKILL',
    'signal 9',
    'signal: 9',
    'Killed',
  ],
  /exit ?code ?:? ?-9\b|(?:died|killed|terminated|exited|ended).{0,400}(?:SIGKILL|signal:? 9\b)|^(?:\S{1,300}: )?(?:line \d{1,20}: +\d{1,20} )?Killed\b(?!.{0,400}due to)/,
);
const exited137 = pattern(
  ['137'],
  /(?:exited?|exit(?:ed)? with|ended with|returned|status|code)\D{0,16}\b137\b|"ExitCode": 137/,
);
/** SGLang ends itself by SIGKILL once one of its schedulers has failed by an exception of its own (engine.py). */
const ownEnd = pattern('Scheduler hit an exception', /Scheduler hit an exception/);
const notOom = pattern(['OOMKilled', 'No entries'], /"?OOMKilled"?: ?false|-- No entries --/);

/** So much page cache is more than a start leaves by itself. */
const LEAST_CACHE_GIB = 24;

/** The engine ended by SIGKILL while it loaded: the kernel's doing where a line says so, likely otherwise. */
export const killedWhileLoading: Signature = {
  name: 'killed-while-loading',
  causes: [
    'oom-killer-during-weight-load',
    'device-allocation-failed-sigkill-unattributed',
    'page-cache-hides-unified-memory',
  ],
  seenOn: 'SGLang 0.5.17 on two Sparks, September 2026; kernels 5.15 to 7.0; docker 28',
  source: 'SGLang engine.py; kernel mm/oom_kill.c; moby container state; systemd unit.c',
  looks: [
    'Out of memory: Killed process 4821 (VLLM::Worker_TP) total-vm:98304000kB, anon-rss:61234567kB',
    'RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).',
  ],
  whileServing: true,
  patterns: [killed, exited137, notOom, ownEnd, KERNEL_OOM, ...CUDA_OUT_OF_MEMORY, ...READING_FORMS],
  match(view) {
    const { evidence, find } = view;
    const oom = find(KERNEL_OOM).filter((found) => !isCompiler(victimOf(found)));
    const named = oom.find((found) => victimOf(found) !== undefined) ?? oom[0];
    const ends = [...find(killed), ...find(exited137)].filter((found) => found.side?.kind !== 'client');
    const first = named ?? ends[0];
    const over = evidence.ranks.find(wasKilled);
    const node = first?.node ?? over?.node;
    if (node === undefined || (named === undefined && view.serves)) return undefined;
    if (named === undefined && find(ownEnd).some((found) => found.node === node)) return undefined;
    const allocation = CUDA_OUT_OF_MEMORY.flatMap((form) => find(form)).find((found) => found.node === node);
    if (named === undefined && allocation !== undefined) return unattributed(view, node, allocation, first);
    // Without the kernel's word a SIGKILL is the kernel's only while memory is being filled.
    const stage = first?.stage ?? over?.stage;
    if (named === undefined && stage !== 'weights') return undefined;
    // The guard beside the rank may know better than an exit code.
    if (named === undefined && ends.length === 0 && over !== undefined && memoryLasted(evidence, over))
      return undefined;
    const cache = named === undefined ? cacheIn(readingsOf(view, node)) : undefined;
    if (cache?.cache !== undefined && cache.cache >= LEAST_CACHE_GIB) return byCache(node, cache, ends);
    return {
      cause: 'oom-killer-during-weight-load',
      node,
      shown: shownOf(view, node, named, ends),
      title: named
        ? `${node} ran out of host memory, and the kernel ended ${victimOf(named) ?? 'the rank'}`
        : `The rank on ${node} was ended by SIGKILL while it read the weights, most likely because memory ran out`,
      why: named
        ? 'The kernel says so itself.'
        : 'That is what the kernel does when memory runs out; no line of the kernel is in the evidence.',
      advice: [
        `On ${node}: sudo dmesg -T | grep -i -e oom -e 'killed process'; free -g`,
        'Free memory there, lower memory.fraction, or use more nodes or a smaller quantisation; another loader (--load-format) needs less beside the weights.',
      ],
      values: named === undefined ? {} : { victim: victimOf(named) ?? '' },
      confidence: named ? 0.92 : 0.7,
      specificity: named ? 3 : 2,
    };
  },
};

/** Files filled the memory of a node whose GPU shares it, and the rank was ended in the middle of them. */
function byCache(node: string, cache: Reading, ends: readonly Found[]): Match {
  return {
    cause: 'page-cache-hides-unified-memory',
    node,
    shown: [cache.found, ...ends.filter((found) => found.node === node).slice(0, 2)],
    title: `The page cache of ${node} left too little memory for the weights, and the rank was ended by SIGKILL`,
    why: `${(cache.cache ?? 0).toFixed(1)} GiB were page cache while the files were read; on unified memory they count as taken for the GPU.`,
    advice: [
      `On ${node}: sync && echo 3 | sudo tee /proc/sys/vm/drop_caches, right before the launch`,
      'A loader that does not keep pages helps too: --safetensors-load-strategy eager (vLLM), --weight-loader-drop-cache-after-load (SGLang).',
    ],
    confidence: 0.72,
    specificity: 3,
    alternatives: [{ cause: 'oom-killer-during-weight-load', confidence: 0.25 }],
  };
}

function shownOf(
  view: View,
  node: string,
  named: Found | undefined,
  ends: readonly Found[],
): readonly Found[] {
  const on = (found: Found) => found.node === node;
  const kernel = view.find(KERNEL_OOM).filter((found) => on(found) && found !== named);
  return [...(named ? [named] : []), ...kernel.slice(0, 1), ...ends.filter(on).slice(0, 1)].slice(0, 3);
}

function unattributed(view: View, node: string, allocation: Found, first: Found | undefined) {
  const denied = view.find(notOom).filter((found) => found.node === node);
  return {
    cause: 'device-allocation-failed-sigkill-unattributed',
    node,
    shown: [allocation, ...(first ? [first] : []), ...denied.slice(0, 2)],
    title: `${node} could not get GPU memory, and its rank was then ended by a SIGKILL of unknown origin`,
    why: `The failed allocation is certain; who sent the signal is not${denied.length > 0 ? ': neither the container nor the kernel tells of the OOM killer' : ''}.`,
    advice: [
      `On ${node}: sudo dmesg -T | grep -i -e oom -e 'killed process'; journalctl -u systemd-oomd -u earlyoom --since -1h`,
      'Treat the allocation as the cause: less memory.fraction, fewer sequences, or a smaller model.',
    ],
    // Where the log itself names the signal, that is all there is to say; an exit code alone says less.
    confidence: denied.length > 0 ? 0.85 : 0.62,
    specificity: first === undefined ? 1 : denied.length > 0 ? 3 : 2,
  } as const;
}

function wasKilled(rank: RankEvidence): boolean {
  const code = rank.ended?.requested === false ? rank.ended.code : undefined;
  return rank.stage === 'weights' && (code === 137 || code === -9);
}
