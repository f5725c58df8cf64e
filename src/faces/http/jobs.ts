import type { z } from 'zod';
import { UserError } from '../../domain/user-error.ts';
import { begin } from '../../operations/begin.ts';
import type { Answer, Operation } from '../../operations/operation.ts';
import type { World } from '../../operations/world.ts';

/** Runs that were begun here and go on without their client. */
export type Jobs = {
  /** Starts it; resolves with the run as soon as it stands in the journal, or with the answer where it opened none. */
  start(
    world: World,
    operation: Operation,
    input: z.output<z.ZodType>,
    face: string,
  ): Promise<{ readonly run: string } | { readonly answer: Answer }>;
  /** Ends the run as Ctrl-C would. False where it does not work here. */
  end(run: string): boolean;
  works(run: string): boolean;
  /** Resolves when all have ended. */
  over(): Promise<void>;
};

export function newJobs(bug: (error: unknown) => void): Jobs {
  const open = new Map<string, AbortController>();
  const all = new Set<Promise<unknown>>();
  return {
    async start(world, operation, input, face) {
      const controller = new AbortController();
      const { run, done } = begin(world, operation, input, { signal: controller.signal, face });
      const told = done.then(
        (answer) => ({ answer }),
        (error: unknown) => ({ error }),
      );
      all.add(told);
      void told.then(() => all.delete(told));
      const id = await run;
      if (id === undefined) {
        const end = await told;
        if ('error' in end) throw end.error;
        return end;
      }
      open.set(id, controller);
      void told.then((end) => {
        open.delete(id);
        // A user error stands in run-ended; a mistake of ours is told here too.
        if ('error' in end && !(end.error instanceof UserError)) bug(end.error);
      });
      return { run: id };
    },
    end(run) {
      const controller = open.get(run);
      controller?.abort(new Error('ended by its client'));
      return controller !== undefined;
    },
    works: (run) => open.has(run),
    async over() {
      await Promise.all([...all]);
    },
  };
}
