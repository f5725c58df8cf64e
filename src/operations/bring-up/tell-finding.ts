import type { Finding } from '../../domain/finding.ts';
import { familyField } from '../../knowledge/causes.ts';
import type { BringUp } from './progress.ts';

/** Emits a finding that rests on what was seen, not on a rank's log, and returns it. */
export function tellFinding(
  { recorder, nodes }: BringUp,
  attempt: number,
  said: {
    readonly cause: string;
    readonly node: string | undefined;
    readonly title: string;
    readonly why: string;
    readonly advice: readonly string[];
    readonly values?: Finding['values'];
  },
): Finding {
  const rank = nodes.findIndex((node) => node.name === said.node);
  const finding: Finding = {
    values: {},
    ...said,
    rank: rank === -1 ? undefined : rank,
    role: rank === -1 ? undefined : rank === 0 ? 'head' : 'worker',
    stage: undefined,
    final: true,
    confidence: 1,
    quotes: [],
    consequences: [],
    ...familyField(said.cause),
  };
  recorder.emit({ type: 'finding', attempt, ...finding });
  return finding;
}
