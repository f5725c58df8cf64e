import { nodesOf, peerOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { KERNEL_OOM } from './host-memory.ts';
import { leastAvailable, NVRM_NO_MEMORY, READING_FORMS, readingsOf } from './memory-readings.ts';

const gone = pattern(
  [
    'No route to host',
    'Broken pipe',
    'Connection timed out',
    'banner exchange',
    'lost communication with a remote daemon',
    'Host is down',
    'not responding',
    'unresponsive',
    'stopped answering',
    'Destination Host Unreachable',
    '100% packet loss',
    'marked dead',
    'power cycle',
    'power-cycle',
  ],
  /ssh: connect to host \S{1,300} port \d{1,20}: (?:No route to host|Connection timed out|Host is down)|client_loop: send disconnect|timed out during banner exchange|lost communication with a remote daemon|Timeout, server \S{1,300} not responding|Destination Host Unreachable|100% packet loss|\b(?:host|node|box|machine|spark\S{0,300})\b.{0,400}(?:unresponsive|not responding|stopped answering|froze|hung)|[Nn]ode .{0,400}marked dead|power[- ]cycled?/,
);
const seized = pattern(
  [
    'soft lockup',
    'hung_task',
    'blocked for more than',
    'rcu: INFO',
    'rcu_preempt',
    'page allocation failure',
    'Under memory pressure',
    'under memory pressure',
    'workqueue lockup',
    'task hung',
    'full avg10',
    'allocation stall',
  ],
  /soft lockup|blocked for more than \d{1,20} seconds|rcu_\w{1,80} (?:self-)?detected (?:expedited )?stalls?|page allocation (?:failure|stalls)|[Uu]nder memory pressure|workqueue lockup|full avg10=(?:[4-9]\d|100)/,
);
const anewBoot = pattern(
  ['-- Boot ', '-- Reboot --', 'uncleanly shut down', 'Linux version '],
  /^-- (?:Boot|Reboot)\b|uncleanly shut down|Linux version \d/,
);
const heat = pattern(
  ['hermal', 'Throttl', 'hutdown temp', 'overheat'],
  /[Tt]hermal|[Ss]hutdown temp|overheat|Throttl/,
);

/** One such line stands in good starts too; a storm of them does not (MiaAI-Lab/DeepSeek-v4-Flash-DSpark#17). */
const MANY = 3;

/** The shared memory ran out so far that a host no longer answers: seen as a lost network from the other side. */
export const hostFroze: Signature = {
  name: 'host-froze',
  causes: ['unified-memory-exhausted-host-freeze'],
  seenOn: 'GB10 with driver 580, kernels 6.14 and 6.17, 2026',
  source:
    'NVIDIA/dgx-spark-playbooks#102; NVIDIA/open-gpu-kernel-modules#1358; kernel hung_task.c, watchdog.c, mm/page_alloc.c',
  looks: [
    'kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)',
    'on the other node: client_loop: send disconnect: Broken pipe',
  ],
  whileServing: true,
  patterns: [gone, seized, anewBoot, heat, NVRM_NO_MEMORY, KERNEL_OOM, ...READING_FORMS],
  match(view) {
    for (const node of nodesOf(view.evidence)) {
      const match = froze(view, node);
      if (match !== undefined) return match;
    }
    return undefined;
  },
};

/** Two signs of want on the node, or one and its silence to the others. */
function froze(view: View, node: string): Match | undefined {
  const on = (found: Found) => found.node === node;
  const want = view.find(NVRM_NO_MEMORY).find(on);
  const stuck = view.find(seized).find(on);
  const low = leastAvailable(readingsOf(view, node));
  const little = low?.available !== undefined && low.available < 2 ? low.found : undefined;
  const signs = [want, stuck, little].filter((found) => found !== undefined);
  const boot = view.find(anewBoot).find((found) => on(found) && /Boot|Reboot|uncleanly/.test(found.message));
  const lost = lostFor(view, node);
  const first = signs[0];
  if (first === undefined || view.find(heat).some(on)) return undefined;
  const wants = view.find(NVRM_NO_MEMORY).filter(on);
  const silent = want !== undefined && (endsThere(view, want) || (wants.length >= MANY && !view.serves));
  if (lost === undefined && boot === undefined && !silent && !(signs.length > 1 && stuck !== undefined))
    return undefined;
  const shown = [...signs, ...(boot === undefined ? [] : [boot]), ...(lost === undefined ? [] : [lost])];
  return {
    cause: 'unified-memory-exhausted-host-freeze',
    node,
    shown: shown.slice(0, 5),
    title: `${node} ran so far out of memory that it stopped answering`,
    why: `${want === undefined ? 'Its kernel was stuck' : 'Its driver could get no more memory'}, and then ${lost !== undefined ? `${lost.node} lost it` : boot !== undefined ? 'the host was started anew' : 'nothing more was said'}. On unified memory that starves the whole host, not only the engine.`,
    advice: [
      `Look whether ${node} answers again: ssh ${node} uptime. If not, take its power away and give it back.`,
      'Then leave more room: lower memory.fraction by 0.1, or raise memory.reserve; no desktop, and no test with buffers of many GiB beside the engine.',
    ],
    confidence:
      silent && lost === undefined && boot === undefined
        ? 0.62
        : signs.length > 1 || (want !== undefined && lost !== undefined)
          ? 0.85
          : 0.7,
    specificity: 3,
    alternatives: [{ cause: 'unified-memory-exhausted-driver-alloc', confidence: 0.15 }],
  };
}

/** Whether nothing came after the driver's complaint, in a log of a rank that had not ended: a host that froze says no more. */
function endsThere(view: View, want: Found): boolean {
  const log = view.logs.find(({ node, kind }) => node === want.node && kind === 'rank');
  const last = log?.last?.line ?? Number.POSITIVE_INFINITY;
  return (
    log?.exit === undefined &&
    log?.stage !== 'serving' &&
    want.side === undefined &&
    want.line.line >= last - 1
  );
}

/** A line by which somebody else lost the node: it may name it, or be a pair's other half. */
function lostFor(view: View, node: string): Found | undefined {
  const all = view.find(gone);
  return (
    all.find((found) => found.message.includes(node)) ??
    all.find((found) => /power[- ]cycle|unresponsive|froze|stopped answering/.test(found.message)) ??
    all.find(
      (found) =>
        found.node !== node && (peerOf(view.evidence, node) === found.node || found.side !== undefined),
    ) ??
    all.find((found) => found.side !== undefined)
  );
}
