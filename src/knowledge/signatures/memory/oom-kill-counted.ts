import { gib } from '../../../domain/units.ts';
import { pattern, type Signature } from '../signature.ts';
import { lastWords } from './stopped-by-guard.ts';

const killed = pattern(
  ['Out of memory: Killed process', 'Memory cgroup out of memory'],
  /Out of memory: Killed process|Memory cgroup out of memory/,
);

/** The counter of a rank's own cgroup or container says that the kernel killed for memory in it: that is proof, an exit code is not. */
export const oomKillCounted: Signature = {
  name: 'oom-kill-counted',
  causes: ['oom-killer-during-weight-load'],
  seenOn: 'Linux 6.1 to 6.18, cgroup v1 and v2; docker 20 to 29',
  source: 'memory.events, memory.oom_control, State.OOMKilled, as the rank’s guard reads them',
  patterns: [killed],
  whileServing: true,
  match({ evidence, find }) {
    const rank = evidence.ranks.find(({ guard, ended }) => ended !== undefined && (guard?.oomKills ?? 0) > 0);
    if (rank?.guard === undefined) return undefined;
    const { node, guard } = rank;
    const times = guard.oomKills === 1 ? 'one process' : `${guard.oomKills} processes`;
    return {
      cause: 'oom-killer-during-weight-load',
      node,
      shown: [
        ...find(killed)
          .filter((found) => found.node === node)
          .slice(0, 2),
        ...lastWords(rank),
      ],
      title: `${node} ran out of host memory, and the kernel ended rank ${rank.rank}`,
      why: `The rank's own cgroup counts ${times} killed for memory; the least that was available before is ${gib(guard.lowestBytes)}.`,
      advice: [
        'Free memory there, or use more nodes, a smaller quantisation or a smaller memory.fraction.',
        `On ${node}: sudo dmesg -T | grep -i oom`,
      ],
      values: { oomKills: String(guard.oomKills), lowestBytes: String(guard.lowestBytes) },
      confidence: 0.95,
      specificity: 3,
    };
  },
};
