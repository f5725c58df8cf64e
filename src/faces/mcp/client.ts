import { UserError } from '../../domain/user-error.ts';
import type { World } from '../../operations/world.ts';

/** One agent that is connected: what it was shown, and the World that it works in. */
export type Client = {
  world(): World;
  readonly readOnly: boolean;
  /** Notes that this client was shown what `digest` stands for, under a subject such as `up /path/recipe.yaml`. */
  show(subject: string, digest: string): void;
  /** Throws a UserError unless this very client was shown it for the same subject. */
  mustHaveSeen(subject: string, digest: string | undefined, how: string): void;
  /** Throws a UserError where this server only shows. */
  mustChange(): void;
};

const KEPT = 200;

export function newClient(world: () => World, readOnly: boolean): Client {
  const shown = new Set<string>();
  const keyOf = (subject: string, digest: string): string => `${digest} ${subject}`;
  return {
    world,
    readOnly,
    show(subject, digest) {
      shown.add(keyOf(subject, digest));
      const [oldest] = shown;
      if (shown.size > KEPT && oldest !== undefined) shown.delete(oldest);
    },
    mustHaveSeen(subject, digest, how) {
      if (digest !== undefined && shown.has(keyOf(subject, digest))) return;
      throw new UserError(
        'plan-changed',
        digest === undefined
          ? 'what changes a host takes the digest of a plan that you were shown'
          : `the digest ${digest.slice(0, 64)} is of no plan that this client was shown for that`,
        how,
      );
    },
    mustChange() {
      if (readOnly)
        throw new UserError(
          'bad-input',
          'this server only shows',
          'a person starts firstlight serve without --read-only',
        );
    },
  };
}
