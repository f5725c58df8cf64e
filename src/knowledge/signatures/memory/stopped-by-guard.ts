import type { RankEvidence } from '../../../domain/evidence.ts';
import { type GuardRecord, stoppedByGuard as guardStopped } from '../../../domain/guard.ts';
import { gib } from '../../../domain/units.ts';
import { messageOf } from '../../engines/log-line.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { holderWords, memoryOwner, stopCommand } from './memory-owner.ts';

/** One such line stands in the kernel's log of starts that succeed too (driver 580.95): alone it proves nothing. */
const driverNoMemory = pattern('NV_ERR_NO_MEMORY', /NV_ERR_NO_MEMORY/);

/** The guard beside a rank stopped it, and put down why (remote/guard-script.ts): then no line of the log explains the end. */
export const stoppedByGuard: Signature = {
  name: 'stopped-by-guard',
  causes: ['memory-exhausted-rank-stopped', 'leftover-process-holds-gpu-memory'],
  seenOn: "firstlight's own guard",
  source: 'guard.json in the rank’s folder',
  patterns: [driverNoMemory],
  whileServing: true,
  looks: ['NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)'],
  match(view) {
    for (const rank of view.evidence.ranks) {
      if (guardStopped(rank.guard)) return matchOf(view, rank, rank.guard);
    }
    return undefined;
  },
};

function matchOf({ evidence, find }: View, rank: RankEvidence, guard: GuardRecord): Match {
  const { node } = rank;
  const owner = memoryOwner(evidence, node);
  const holder = owner.kind === 'holder' ? owner.holder : undefined;
  const now = guard.curve.at(-1)?.bytes ?? guard.lowestBytes;
  // A rank that had taken next to nothing yet cannot be cured by taking less.
  const taken = holder !== undefined && ['start', 'rendezvous'].includes(rank.stage);
  return {
    cause: taken ? 'leftover-process-holds-gpu-memory' : 'memory-exhausted-rank-stopped',
    node,
    shown: [...lastWords(rank), ...find(driverNoMemory).filter((found) => found.node === node)],
    title: taken
      ? `${holder.name} holds memory on ${node} that the engine needs; rank ${rank.rank} was stopped there before the host froze`
      : `The memory of ${node} ran out, and rank ${rank.rank} was stopped there before the host froze`,
    why: `${reason(guard, now)}${holder === undefined ? '' : ` Beside the engine there is ${holderWords(holder)}.`}`,
    advice: [
      ...(holder === undefined ? [] : [`On ${node}: ${stopCommand(holder)}`]),
      `Lower memory.fraction, context or sequences in the recipe, or keep less than ${gib(guard.reserveBytes)} available with memory.guard.`,
    ],
    values: {
      availableBytes: String(now),
      reserveBytes: String(guard.reserveBytes),
      why: guard.why ?? 'unknown',
      stoppedBy: guard.by,
      kernelLog: guard.kernelLog,
      curve: guard.curve.map(({ second, bytes }) => `${second}:${Math.round(bytes / 2 ** 20)}`).join(' '),
      ...(holder === undefined
        ? {}
        : { holder: holder.name, pid: String(holder.pid), bytes: String(holder.bytes) }),
    },
    confidence: 1,
    specificity: 3,
  };
}

/** "2.1 GiB were available there, down from 115.4 GiB in 5 s, and 3.0 GiB are to stay free." */
function reason(guard: GuardRecord, now: number): string {
  const course = courseOf(guard);
  const left = `${gib(now)} ${guard.memory === 'cgroup' ? "of the rank's own memory limit were left" : 'were available there'}${course}`;
  switch (guard.why) {
    case 'falling':
      return `${left}, and within two seconds they would have been gone.`;
    case 'driver':
      return `${left}, and the driver reported NV_ERR_NO_MEMORY${guard.driverErrors > 1 ? ` ${guard.driverErrors} times` : ''}.`;
    default:
      return `${left}, and ${gib(guard.reserveBytes)} are to stay free.`;
  }
}

/** ", down from 61.2 GiB in 41 s" */
function courseOf({ curve }: GuardRecord): string {
  const last = curve.at(-1);
  const most = curve.toSorted((a, b) => b.bytes - a.bytes)[0];
  if (last === undefined || most === undefined || most.bytes <= last.bytes) return '';
  return `, down from ${gib(most.bytes)} in ${last.second - most.second} s`;
}

/** What Python says of every process that was not ended by its own program (multiprocessing/resource_tracker.py). */
const PYTHON_ENDS = /\bresource_tracker\b|^\s*warnings\.warn\(/;

/** What the rank printed last, as the place in its log where it was stopped; nothing where it is silent. */
export function lastWords(rank: RankEvidence): readonly Found[] {
  // A bar that is drawn anew may leave a prefix alone behind.
  const line = rank.lines.findLast(({ text }) => messageOf(text).trim() !== '' && !PYTHON_ENDS.test(text));
  if (line === undefined) return [];
  const { rank: number, role, node, stage } = rank;
  return [{ rank: number, role, node, line, message: line.text, stage, groups: {} }];
}
