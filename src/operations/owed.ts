import type { Owed } from '../domain/event.ts';
import { type NodeFacts, type UndoRecord, valueIf } from '../domain/facts.ts';

/** Every way back that waits on a node, with the node it lies on. */
export function pendingUndo(
  facts: readonly NodeFacts[],
): readonly (UndoRecord & { readonly node: string })[] {
  return facts.flatMap((node) =>
    node.reached
      ? (valueIf(node.owed) ?? [])
          .filter((record) => record.state === 'pending')
          .map((record) => ({ ...record, node: node.node }))
      : [],
  );
}

/** What was stopped for a run and is not given back, as the nodes' own records say. */
export function owedOf(facts: readonly NodeFacts[]): readonly Owed[] {
  return pendingUndo(facts).map(({ node, id, title }) => ({ node, id, title }));
}
