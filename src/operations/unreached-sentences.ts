import type { NodeFacts } from '../domain/facts.ts';

/** "spark-b was not reached: …" for each node that was not; and for each whose records of ours could not be read. */
export function unreachedSentences(facts: readonly NodeFacts[]): readonly string[] {
  return facts.flatMap((node) => {
    if (!node.reached) return [`${node.node} was not reached: ${node.failure.sentence}`];
    const unread = [node.ranks, node.owed].find((fact) => !fact.known);
    return unread === undefined || unread.known
      ? []
      : [`What firstlight left on ${node.node} is not known: ${unread.why}.`];
  });
}
