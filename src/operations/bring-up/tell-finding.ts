import { familyField } from '../../knowledge/causes.ts';
import type { BringUp } from './progress.ts';

/** Emits a finding that rests on what was seen, not on a rank's log. */
export function tellFinding(
  { recorder, nodes }: BringUp,
  attempt: number,
  said: {
    readonly cause: string;
    readonly node: string | undefined;
    readonly title: string;
    readonly why: string;
    readonly advice: readonly string[];
  },
): void {
  const rank = nodes.findIndex((node) => node.name === said.node);
  recorder.emit({
    type: 'finding',
    attempt,
    ...said,
    rank: rank === -1 ? undefined : rank,
    role: rank === -1 ? undefined : rank === 0 ? 'head' : 'worker',
    stage: undefined,
    final: true,
    confidence: 1,
    quotes: [],
    consequences: [],
    values: {},
    ...familyField(said.cause),
  });
}
