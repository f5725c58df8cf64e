import type { Evidence } from '../domain/evidence.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import type { Finding } from '../domain/finding.ts';
import { familyField } from '../knowledge/causes.ts';

/** A host that began anew while its rank ran, told by its boot id before and after: then no line explains the end. */
export function restarted(evidence: Evidence, final: boolean): Finding | undefined {
  const rank = evidence.ranks.find(({ node, ended }) => {
    const [before, after] = [evidence.before, evidence.after].map((facts) => bootOf(facts, node));
    return ended?.requested !== true && before !== undefined && after !== undefined && before !== after;
  });
  if (rank === undefined) return undefined;
  const { node } = rank;
  return {
    cause: 'host-restarted',
    ...familyField('host-restarted'),
    node,
    rank: rank.rank,
    role: rank.role,
    stage: rank.stage,
    final,
    confidence: 1,
    title: `${node} was restarted while rank ${rank.rank} ran`,
    why: 'Its boot id is another one than before the launch, so all that ran there has ended.',
    quotes: [],
    consequences: evidence.ranks
      .filter((other) => other.node !== node && other.ended !== undefined && !other.ended.requested)
      .map((other) => `Rank ${other.rank} on ${other.node} ended too.`),
    advice: [`Why it restarted may stand in, on ${node}: journalctl -b -1 -e; last -x reboot shutdown`],
    values: {},
  };
}

function bootOf(facts: readonly NodeFacts[], node: string): string | undefined {
  const seen = facts.find((one) => one.node === node);
  return seen?.reached ? valueIf(seen.host)?.bootId || undefined : undefined;
}
