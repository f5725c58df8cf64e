import type { NodeFacts } from '../../domain/facts.ts';
import { look, lookAtMemory } from '../../operations/look.ts';
import { memoryOnto } from '../../operations/memory-onto.ts';
import type { World } from '../../operations/world.ts';

export type Looked = {
  /** When it began, ms. */
  readonly at: number;
  readonly number: number;
  readonly facts: readonly NodeFacts[];
  /** How long it took. */
  readonly milliseconds: number;
};

/** What is no memory is looked at again after so long, while memory alone is looked at. */
const WHOLE_MILLISECONDS = 30_000;

/** Looks that all clients share: one at a time, and none where the last one is young enough. */
export type Looks = {
  /** A look not older than that, in milliseconds. */
  fresh(milliseconds: number): Promise<Looked>;
  /** As fresh, but memory and its holders alone need be so young: cheaper for the nodes. */
  freshMemory(milliseconds: number): Promise<Looked>;
  last(): Looked | undefined;
};

export function newLooks(world: () => World): Looks {
  let last: Looked | undefined;
  let wholeAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<Looked> | undefined;
  let remembering: Promise<Looked> | undefined;
  const took = (at: number, facts: readonly NodeFacts[]): Looked => {
    const now = world().clock.now();
    last = { at, number: (last?.number ?? 0) + 1, facts, milliseconds: now - at };
    return last;
  };
  const see = async (): Promise<Looked> => {
    const now = world();
    const at = now.clock.now();
    const facts = await look(now, now.cluster.nodes, undefined);
    wholeAt = at;
    return took(at, facts);
  };
  const seeMemory = async (before: Looked): Promise<Looked> => {
    const now = world();
    const at = now.clock.now();
    const facts = await lookAtMemory(now, now.cluster.nodes, before.facts);
    // A whole look that began later knows better.
    return last !== undefined && last.at > at ? last : took(at, memoryOnto((last ?? before).facts, facts));
  };
  const fresh = async (milliseconds: number): Promise<Looked> => {
    if (last !== undefined && world().clock.now() - last.at <= milliseconds) return last;
    looking ??= see().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  return {
    fresh,
    async freshMemory(milliseconds) {
      const now = world().clock.now();
      if (last === undefined || now - wholeAt > WHOLE_MILLISECONDS) return fresh(milliseconds);
      if (now - last.at <= milliseconds) return last;
      remembering ??= seeMemory(last).finally(() => {
        remembering = undefined;
      });
      return remembering;
    },
    last: () => last,
  };
}
