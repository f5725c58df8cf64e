import { inOrder } from '../line-signature.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const healthy = pattern(
  ['GET /health', 'GET /v1/models', 'HTTP/1.1 200', 'HTTP/1.1" 200', '"status":"ok"', 'healthy'],
  /"?GET \/(?:health\w{0,80}|v1\/models|ping)[^"]{0,400} HTTP\/1\.[01]"? 200|\/health\b.{0,600}\b200\b|\((?:healthy)\)/,
);
const died = pattern(
  [
    'died unexpectedly',
    'Exited (',
    'exited with code',
    'exited with exit code',
    'terminated with',
    'crashed with exit code',
    'was killed',
    'Killed',
    'SIGTERM',
    'SIGKILL',
    'SIGABRT',
    'Segmentation fault',
    'Main process exited',
    'node is marked dead',
    'The node with node id',
    'worker died',
    'Worker died',
    'actor died',
    'core dumped',
    'No such container',
    'is not running',
    'exitCode=',
    'container is gone',
    'container die',
    'Fatal Python error',
  ],
  /died unexpectedly|Exited \((?<code>\d+)\)|exited with (?:exit )?code[: ]{1,400}(?<exit>-?\d+)|terminated with (?:signal|exit|-?\d)|crashed with exit code|\bwas killed\b|^Killed$|\bKilled +\S|SIGKILL|SIGABRT|Segmentation fault|Main process exited|marked dead|[Ww]orker died|actor died|core dumped|No such container|container \S{1,300} is not running|exitCode=(?!0)|container (?:is gone|die)|Fatal Python error/,
);
const hangs = pattern(
  ['timed out', '504', 'Gateway Time', 'Read timeout', 'ReadTimeout', 'no response', '(28)', 'hangs', 'hung'],
  /RPC call to \w{1,80} timed out|\(28\) Operation timed out|Operation timed out after|504 Gateway|Read ?[Tt]imeout|[Rr]equest timed out|no response (?:after|within|from)/,
);

const blocked = pattern(
  'No available shared memory broadcast block found',
  /No available shared memory broadcast block found in (?<seconds>\d+) seconds/,
);

/** A worker is gone, and the head answers its health check as if nothing were. */
export const workerGone: Signature = {
  name: 'worker-gone',
  causes: ['worker-died-head-still-healthy'],
  seenOn: 'vLLM 0.12 to 0.32 over two nodes, SGLang 0.5',
  source: 'vLLM entrypoints /health answers 200 until EngineDeadError; engines.md 2.1, 4',
  whileServing: true,
  patterns: [healthy, died, hangs, blocked],
  looks: [
    '"GET /health HTTP/1.1" 200 OK',
    'Worker proc VllmWorker-1 died unexpectedly, shutting down executor.',
  ],
  match(view) {
    const { evidence } = view;
    const head = evidence.ranks.find(({ role }) => role === 'head');
    const workers = evidence.ranks.filter(({ role }) => role === 'worker');
    const ends = inOrder([died], view).filter((found) =>
      isWorkers(
        found,
        workers.map(({ node }) => node),
      ),
    );
    const ended = workers.find((rank) => rank.ended !== undefined && !rank.ended.requested);
    const last = ends[0];
    const node =
      last === undefined
        ? ended?.node
        : nodeOf(
            last,
            workers.map((rank) => rank.node),
          );
    if (node === undefined) return silentWorker(view);
    const since = last?.line.at ?? ended?.ended?.at ?? 0;
    const well = view.find(healthy).filter((found) => found.node === head?.node || found.side !== undefined);
    const after = well.filter(({ line }) => line.at >= since);
    const silent = inOrder([hangs], view);
    const serving = head?.stage === 'serving' && head.ended === undefined;
    if (after.length === 0 && !(serving && (well.length > 0 || silent.length > 0))) return undefined;
    return {
      cause: 'worker-died-head-still-healthy',
      node,
      shown: [...(last === undefined ? [] : [last]), ...after.slice(0, 1), ...silent.slice(0, 1)],
      title: `The rank on ${node} is gone, and the head still says that it is well`,
      why: 'The health check of the head asks its own process only; the next request waits for a worker that does not come.',
      advice: [
        'Stop both nodes and launch both anew: a worker does not join a running head. firstlight down, then firstlight up.',
        `Why it ended may stand in, on ${node}: its last lines; sudo dmesg -T | tail -50`,
        'Watch a real answer, not /health: firstlight status asks the model for one token.',
      ],
      confidence: after.length > 0 && last !== undefined ? 0.82 : 0.64,
      specificity: 2,
    };
  },
};

/** The head waits for a step again and again while it serves, says that it is well, and the worker says nothing more. */
function silentWorker(view: View): Match | undefined {
  const waits = view.find(blocked).filter(({ stage, role }) => stage === 'serving' && role === 'head');
  const first = waits[0];
  const well = view.find(healthy).filter(({ line }) => first !== undefined && line.at >= first.line.at);
  const workers = view.logs.filter(({ role, kind }) => role === 'worker' && kind === 'rank');
  const quiet = workers.find(({ silentSeconds, lines }) => lines === 0 || silentSeconds > 60);
  if (first === undefined || waits.length < 2 || well.length === 0 || quiet === undefined) return undefined;
  return {
    cause: 'worker-died-head-still-healthy',
    node: quiet.node,
    shown: [first, ...well.slice(0, 1), ...waits.slice(-1)],
    title: `The rank on ${quiet.node} does not answer, and the head still says that it is well`,
    why: 'The head waits for a step in vain; its health check asks its own process only.',
    advice: [
      `See whether that rank still runs, on ${quiet.node}: docker ps -a; nvidia-smi`,
      'Stop both nodes and launch both anew: a worker does not join a running head. firstlight down, then firstlight up.',
    ],
    confidence: 0.55,
    specificity: 1,
    alternatives: [{ cause: 'late-jit-exceeds-execute-timeout', confidence: 0.3 }],
  };
}

function isWorkers(found: Found, nodes: readonly string[]): boolean {
  if (nodes.includes(found.node)) return true;
  return (
    found.side !== undefined &&
    (nodes.some((node) => found.message.includes(node)) || /\bworker/i.test(found.message))
  );
}

function nodeOf(found: Found, nodes: readonly string[]): string | undefined {
  if (nodes.includes(found.node)) return found.node;
  return nodes.find((node) => found.message.includes(node)) ?? nodes[0] ?? 'worker';
}
