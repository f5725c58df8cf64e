import type { NodeFacts } from '../domain/facts.ts';

/** "spark-b was not reached: …" for each node that was not. */
export function unreachedSentences(facts: readonly NodeFacts[]): readonly string[] {
  return facts.flatMap((node) =>
    node.reached ? [] : [`${node.node} was not reached: ${node.failure.sentence}`],
  );
}
