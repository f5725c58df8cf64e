import type { Owed } from '../domain/event.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';

/** What was stopped for a run and is not given back, as the nodes' own records say. */
export function owedOf(facts: readonly NodeFacts[]): readonly Owed[] {
  return facts.flatMap((node) =>
    node.reached
      ? (valueIf(node.owed) ?? [])
          .filter((record) => record.state === 'pending')
          .map((record) => ({ node: node.node, id: record.id, title: record.title }))
      : [],
  );
}
