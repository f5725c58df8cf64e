import { UserError } from '../../domain/user-error.ts';
import type { World } from '../../operations/world.ts';

/** Runs that agents began, and that may go on after their call was answered. */
export type WorkInHand = {
  add(done: Promise<unknown>): void;
  /** Resolves when all have ended; the World's signal is what ends them. */
  over(): Promise<void>;
};

export function newWork(): WorkInHand {
  const open = new Set<Promise<unknown>>();
  return {
    add(done) {
      // Its failure is told by who waits for it, or by its run.
      const ended: Promise<unknown> = done.catch(() => undefined).then(() => open.delete(ended));
      open.add(ended);
    },
    async over() {
      await Promise.all([...open]);
    },
  };
}

/** One agent that is connected: what it was shown, and the World that it works in. */
export type Client = {
  world(): World;
  readonly readOnly: boolean;
  readonly work: WorkInHand;
  /** Notes that this client was shown what `digest` stands for, under a subject such as `up /path/recipe.yaml`. */
  show(subject: string, digest: string): void;
  /** Throws a UserError unless this very client was shown it for the same subject. */
  mustHaveSeen(subject: string, digest: string | undefined, how: string): void;
  /** Throws a UserError where this server only shows. */
  mustChange(): void;
};

const KEPT = 200;

export function newClient(world: () => World, readOnly: boolean, work: WorkInHand): Client {
  const shown = new Set<string>();
  const keyOf = (subject: string, digest: string): string => `${digest} ${subject}`;
  return {
    world,
    readOnly,
    work,
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
