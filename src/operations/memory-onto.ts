import type { NodeFacts } from '../domain/facts.ts';

/** What is seen of memory and its holders now, with all else as a whole look saw it before. */
export function memoryOnto(before: readonly NodeFacts[], now: readonly NodeFacts[]): readonly NodeFacts[] {
  return now.map((facts) => {
    const whole = before.find(({ node }) => node === facts.node);
    if (!facts.reached || !whole?.reached) return facts;
    const { host, interfaces, rdma, disks, engines, model } = whole;
    return { ...facts, host, interfaces, rdma, disks, engines, ...(model === undefined ? {} : { model }) };
  });
}
