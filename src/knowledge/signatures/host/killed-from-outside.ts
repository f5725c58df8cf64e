import type { Evidence, RankEvidence } from '../../../domain/evidence.ts';
import { valueIf } from '../../../domain/facts.ts';
import { gib } from '../../../domain/units.ts';
import { lastWords } from '../memory/stopped-by-guard.ts';
import { factsOf } from '../scene.ts';
import { pattern, type Signature } from '../signature.ts';

const closed = pattern('Connection closed by peer', /Connection closed by peer/);
/** SGLang and Ray end their own trees by SIGKILL after an error, so that code alone says nothing where these stand. */
const ownWords = pattern(
  [
    'Traceback (most recent call last)',
    'sigquit',
    'SIGQUIT',
    'failed to start',
    'Error: ',
    'died unexpectedly',
  ],
  /Traceback \(most recent call last\)|Received sigquit from a child|SIGQUIT received|(?:EngineCore|WorkerProc) failed to start|^[\w.]{0,100}Error: |died unexpectedly/,
);

/** Less than this share of a host's memory left, and the kernel may have been at work between two samples. */
const NEARLY_FULL = 1 / 20;

/** A rank ended by a signal that only somebody else sends, on a host whose memory had not run out, by its guard's record. */
export const killedFromOutside: Signature = {
  name: 'killed-from-outside',
  causes: ['worker-died-head-still-healthy', 'head-ended-from-outside'],
  seenOn: "firstlight's own guard, beside SGLang 0.5 and vLLM 0.28",
  source: 'guard.json in the rank’s folder; exit codes of sh: 128 and the signal',
  looks: [
    'the worker ends with exit code 137 and no error of its own, while its host has memory to spare',
    '[pair.cc:547] Connection closed by peer [192.168.77.13]:17204, on the head',
  ],
  patterns: [closed, ownWords],
  whileServing: true,
  match({ evidence, find }) {
    const spoke = new Set(find(ownWords).map((found) => found.rank));
    const killed = evidence.ranks.filter(
      (one) => !spoke.has(one.rank) && (wasStopped(one) || (wasKilled(one) && memoryLasted(evidence, one))),
    );
    const rank = killed.find(({ role }) => role === 'worker') ?? killed[0];
    if (rank === undefined) return undefined;
    const { node, guard } = rank;
    const stopped = wasStopped(rank) || guard === undefined;
    return {
      cause: rank.role === 'worker' ? 'worker-died-head-still-healthy' : 'head-ended-from-outside',
      node,
      shown: [
        ...find(closed)
          .filter((found) => found.rank !== rank.rank)
          .slice(0, 1),
        ...lastWords(rank),
      ],
      title: `Rank ${rank.rank} on ${node} was ended by ${stopped ? 'SIGTERM' : 'SIGKILL'} from outside, and the other ranks cannot go on without it`,
      why: stopped
        ? 'The kernel ends nobody that way: somebody stopped it, as docker stop and docker restart do.'
        : `Memory was not the reason: the least that was available there is ${gib(guard.lowestBytes)}, and the kernel counts no process of the rank killed for memory.`,
      advice: [
        `Who ends processes there may stand in, on ${node}: sudo journalctl --since -10min; sudo last -n 5`,
        `Stop both nodes and launch both anew: ${rank.role === 'worker' ? 'a worker does not join a running head' : 'a head that begins anew is not found by the workers of the last'}. firstlight down, then firstlight up.`,
      ],
      confidence: 0.75,
      specificity: 2,
    };
  },
};

/** Whether the rank ended by SIGTERM, unasked. */
function wasStopped({ ended }: RankEvidence): boolean {
  return ended?.requested === false && (ended.code === 143 || ended.code === -15);
}

/** Whether the rank ended by SIGKILL, unasked. */
function wasKilled({ ended }: RankEvidence): boolean {
  return ended?.requested === false && (ended.code === 137 || ended.code === -9);
}

/** Whether the rank's guard saw memory to spare all the time, and no kill for memory in its cgroup. */
export function memoryLasted(evidence: Evidence, { guard, node }: RankEvidence): boolean {
  if (guard === undefined || guard.oomKills > 0) return false;
  if (['blind', 'stopping', 'stopped'].includes(guard.state)) return false;
  const total = valueIf(factsOf(evidence, node)?.memory)?.totalBytes ?? 0;
  return guard.lowestBytes > Math.max(guard.reserveBytes, total * NEARLY_FULL);
}
