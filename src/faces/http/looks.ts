import type { NodeFacts } from '../../domain/facts.ts';
import { look } from '../../operations/look.ts';
import type { World } from '../../operations/world.ts';

export type Looked = { readonly at: number; readonly number: number; readonly facts: readonly NodeFacts[] };

/** Looks that all clients share: one at a time, and none where the last one is young enough. */
export type Looks = {
  /** A look not older than that, in milliseconds. */
  fresh(milliseconds: number): Promise<Looked>;
  last(): Looked | undefined;
};

export function newLooks(world: () => World): Looks {
  let last: Looked | undefined;
  let looking: Promise<Looked> | undefined;
  const see = async (): Promise<Looked> => {
    const now = world();
    const at = now.clock.now();
    const facts = await look(now, now.cluster.nodes, undefined);
    last = { at, number: (last?.number ?? 0) + 1, facts };
    return last;
  };
  return {
    async fresh(milliseconds) {
      if (last !== undefined && world().clock.now() - last.at <= milliseconds) return last;
      looking ??= see().finally(() => {
        looking = undefined;
      });
      return looking;
    },
    last: () => last,
  };
}
