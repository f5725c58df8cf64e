import type { Evidence } from '../domain/evidence.ts';
import type { NodeFacts } from '../domain/facts.ts';
import type { Finding } from '../domain/finding.ts';
import { familyField } from '../knowledge/causes.ts';
import { unreachedCause } from '../knowledge/unreached-cause.ts';
import { DURING } from './during.ts';

type Unreached = Extract<NodeFacts, { reached: false }>;

/** A node of the attempt that the look after it did not reach: what its peers' lines tell of then only follows from it. */
export function hostAway(evidence: Evidence, final: boolean): Finding | undefined {
  const away = evidence.after.filter(
    (facts): facts is Unreached =>
      !facts.reached && evidence.ranks.some(({ node, ended }) => node === facts.node && ended === undefined),
  );
  // Who is reached through a host that is away is away by that alone.
  const first = away.find(({ failure }) => failure.why !== 'jump-unreachable') ?? away[0];
  return first === undefined ? undefined : lostHost(evidence, first, final);
}

/** The finding for a host that went away under its rank; `failure` is how it was last met. */
export function lostHost(
  evidence: Evidence,
  { node, failure }: Pick<Unreached, 'node' | 'failure'>,
  final: boolean,
): Finding {
  const rank = evidence.ranks.find((one) => one.node === node);
  const stage = rank?.stage;
  // It was followed until then: its address was the right one.
  const cause = unreachedCause(failure.why, true);
  return {
    cause,
    ...familyField(cause),
    node,
    rank: rank?.rank,
    role: rank?.role,
    stage,
    final,
    confidence: 1,
    title: `${node} was lost ${stage === undefined ? 'while it was followed' : DURING[stage]}`,
    why: failure.sentence,
    quotes: (rank?.lines ?? [])
      .slice(-1)
      .map(({ line, text }) => ({ rank: rank?.rank ?? 0, node, line, text })),
    consequences: evidence.ranks
      .filter((other) => other.node !== node && other.ended !== undefined && !other.ended.requested)
      .map((other) => `Rank ${other.rank} on ${other.node} ended.`),
    advice:
      cause === 'host-unreachable'
        ? [`See whether ${node} is up and its network too; then firstlight up goes on from what runs`]
        : [failure.remedy, 'Then firstlight up goes on from what runs.'],
    values: {},
  };
}
