import type { RankEvidence } from '../../domain/evidence.ts';
import { CUDA_OUT_OF_MEMORY } from './memory-taken.ts';
import { pattern, type Signature } from './signature.ts';

const schedulerKilled = pattern('(exit code: -9)', /died .*\(exit code: -9\)/);
const exited137 = pattern('exited with code 137', /exited with code 137/);
const kernel = pattern(
  ['Out of memory: Killed process', 'Memory cgroup out of memory', 'oom-kill:'],
  /Out of memory: Killed process (?<pid>\d+)|Memory cgroup out of memory|oom-kill:/,
);

/** The engine ended by SIGKILL while it loaded: the kernel's doing where a line says so, likely otherwise. */
export const killedWhileLoading: Signature = {
  name: 'killed-while-loading',
  causes: ['oom-killer-during-weight-load', 'device-allocation-failed-sigkill-unattributed'],
  seenOn: 'SGLang 0.5.17 on two Sparks, September 2026',
  source: 'SGLang engine.py; kernel mm/oom_kill.c',
  patterns: [schedulerKilled, exited137, kernel, ...CUDA_OUT_OF_MEMORY],
  match({ evidence, find }) {
    const lines = [...find(kernel), ...find(schedulerKilled), ...find(exited137)];
    const first = lines[0];
    const killed = evidence.ranks.find(wasKilled);
    const node = first?.node ?? killed?.node;
    if (node === undefined) return undefined;
    const allocation = CUDA_OUT_OF_MEMORY.flatMap((form) => find(form)).find((found) => found.node === node);
    const byKernel = find(kernel).some((found) => found.node === node);
    if (allocation !== undefined && !byKernel) {
      return {
        cause: 'device-allocation-failed-sigkill-unattributed',
        node,
        shown: first ? [allocation, first] : [allocation],
        title: `${node} could not get GPU memory, and its rank was then ended by a SIGKILL of unknown origin`,
        why: 'The failed allocation is certain; who sent the signal is not.',
        advice: [`On ${node}: sudo dmesg -T | grep -i -e oom -e 'killed process'`],
        // Where the log itself names the signal, that is all there is to say; an exit code alone says less.
        confidence: 0.6,
        specificity: first === undefined ? 1 : 2,
      };
    }
    if (!byKernel && (first?.stage ?? killed?.stage) !== 'weights') return undefined;
    return {
      cause: 'oom-killer-during-weight-load',
      node,
      shown: lines.filter((found) => found.node === node).slice(0, 3),
      title: byKernel
        ? `${node} ran out of host memory, and the kernel ended the rank`
        : `The rank on ${node} was ended by SIGKILL while it read the weights, most likely because memory ran out`,
      why: byKernel
        ? 'The kernel says so itself.'
        : 'That is what the kernel does when memory runs out; no line of the kernel is in the evidence.',
      advice: [
        `On ${node}: sudo dmesg -T | grep -i oom`,
        'Free memory there, or use more nodes or a smaller quantisation.',
      ],
      confidence: byKernel ? 0.9 : 0.65,
      specificity: 2,
    };
  },
};

function wasKilled(rank: RankEvidence): boolean {
  const code = rank.ended?.requested === false ? rank.ended.code : undefined;
  return rank.stage === 'weights' && (code === 137 || code === -9);
}
