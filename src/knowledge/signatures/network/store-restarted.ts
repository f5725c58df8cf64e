import { headOf, peersOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const actor = pattern(
  [
    'but the current job is',
    'ActorHandleNotFoundError',
    'session name',
    'session_name',
    'cluster id',
    'Cluster ID',
    'ClusterID',
  ],
  /Actor \w{1,80} created in job (?<job>\w{1,80}), but the current job is (?<current>\w{1,80})|session[ _]name.{0,400}(?:changed|does not match|mismatch|differs)|[Cc]luster ?(?:id|ID).{0,400}(?:mismatch|does not match|changed)/,
);
const gcsGone = pattern(
  ['GCS', 'gcs_'],
  /(?:GCS|gcs)\S{0,300} (?:server )?(?:has )?(?:restarted|may have been (?:killed|restarted)|was restarted|connection (?:lost|closed))|[Rr]econnect(?:ed|ing) to (?:the )?GCS|marked (?:as )?dead (?:by|in) (?:the )?GCS|[Ff]ailed to (?:connect|reconnect) to GCS within|[Ll]ost connection to (?:the )?GCS/,
);
const storeLost = pattern(
  [
    'recvValue failed',
    'sendBytes failed',
    'should dump',
    'TCPStore',
    'doWait',
    'Connection reset by peer',
    'Broken pipe',
  ],
  /recvValue failed|sendBytes failed|Failed to check the "should dump" flag|TCPStore.{0,400}(?:reset by peer|Broken pipe|shut down|closed|crash)|[Bb]roken pipe.{0,400}c10d|c10d.{0,400}(?:Broken pipe|reset by peer)/,
);
const started = pattern(
  [
    'server_args=',
    'vLLM API server version',
    'vLLM server version',
    'LLM engine (v',
    'Ray runtime started',
    'non-default args',
  ],
  /^server_args=|vLLM (?:API )?server version|^Initializing a V\d LLM engine|Ray runtime started/,
);
const restart = pattern(
  ['estart'],
  /\b(?:head|container|server|engine|service|leader)\b.{0,400}\b(?:restarted|restarting|Restarting|started (?:again|anew))\b|Scheduled restart job|restart counter is at (?<count>\d{1,20})|\bRestarted\b/i,
);
const keys = pattern(
  'keys: /',
  /[Ww]ait timeout.{0,400}keys: \/|timed out.{0,400}waiting for.{0,400}key|Socket Timeout.{0,400}key/,
);

/** The head began anew, and a worker still hangs on the store or the Ray session that it had before. */
export const storeRestarted: Signature = {
  name: 'store-restarted',
  causes: ['head-store-restarted-while-worker-attached'],
  seenOn: 'torch 2.4 to 2.13, Ray 2.50, vLLM 0.20 and later, SGLang 0.5, 2025 and 2026',
  source:
    'torch TCPStore.cpp, ProcessGroupNCCL.cpp; Ray gcs and exceptions.py; vllm-project/vllm#32136; aws-samples/aws-do-eks#69',
  looks: [
    'ray.exceptions.ActorHandleNotFoundError: Actor 3f1c created in job 01000000, but the current job is 02000000',
    'on the worker: recvValue failed on SocketImpl(…): Connection reset by peer, while the head starts for the second time',
  ],
  patterns: [actor, gcsGone, storeLost, started, restart, keys],
  match(view) {
    const { evidence, find } = view;
    if (!severalNodes(evidence)) return undefined;
    const head = headOf(evidence);
    if (head === undefined) return undefined;
    const jobs = find(actor)[0];
    const starts = startsOf(find(started), head);
    const lost = find(storeLost).find((found) => peersOf(evidence, head).includes(found.node));
    const gcs = find(gcsGone)[0];
    const again = find(restart).find((found) => found.node === head || found.side !== undefined);
    const second = starts[1];
    const workerStarts = Math.max(
      0,
      ...peersOf(evidence, head).map((node) => startsOf(find(started), node).length),
    );
    const anew = again ?? (second !== undefined && workerStarts < starts.length ? second : undefined);
    if (anew !== undefined && (lost !== undefined || gcs !== undefined || find(keys).length > 0))
      return told(
        view,
        head,
        [anew, lost ?? gcs ?? find(keys)[0]].filter((found) => found !== undefined),
        0.85,
        3,
      );
    if (gcs !== undefined && /restart|session|dead/i.test(gcs.message))
      return told(view, head, [gcs], 0.7, 2);
    return jobs === undefined
      ? undefined
      : told(view, head, [jobs, ...(lost === undefined ? [] : [lost])], 0.66, 2);
  },
};

/** Starts of one node, each once: an engine says more than one of these lines at each. */
function startsOf(all: readonly Found[], node: string): readonly Found[] {
  const own = all.filter((found) => found.node === node);
  const kind = (found: Found) =>
    /^server_args|server version|LLM engine|Ray runtime/.exec(found.message)?.[0];
  const first = own[0] === undefined ? undefined : kind(own[0]);
  return own.filter((found) => kind(found) === first);
}

function told(
  view: View,
  head: string,
  shown: readonly Found[],
  confidence: number,
  specificity: 2 | 3,
): Match {
  const workers = peersOf(view.evidence, head).join(' and ');
  return {
    cause: 'head-store-restarted-while-worker-attached',
    node: head,
    shown,
    title: `${head} was started anew while ${workers} still hung on what it had been before`,
    why: 'A rank joins one store once: after a new start of the head its old connection leads nowhere, and the two never find each other again.',
    advice: [
      'Stop all ranks, the workers too, and start them together: firstlight down, then firstlight up.',
      'Let no restart policy bring back one rank alone: docker update --restart=no CONTAINER',
    ],
    confidence,
    specificity,
  };
}
