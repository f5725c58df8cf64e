import { z } from 'zod';
import type { Owed } from '../../domain/event.ts';
import { begin } from '../../operations/begin.ts';
import type { Operation } from '../../operations/operation.ts';
import { followRun } from './follow-run.ts';
import type { Work } from './tool.ts';
import { digest, leftOut, owed } from './tools/shapes.ts';

/** How long such a run is waited for, in seconds. */
const MOST_SECONDS = 1800;

/** What a tool answers that first shows what it would do, and does it when its digest comes back. */
export const shownFirst = {
  done: z.boolean(),
  digest: z.string().optional().describe('hand this back as plan to have it done'),
  givesBack: owed,
  run: z.string().optional(),
  outcome: z.string().optional(),
  why: z.string().optional(),
  owed: owed.describe('what is owed still'),
  left_out: leftOut,
};

/** The input of such a tool that has it done. */
export const shownPlan = digest
  .optional()
  .describe('digest that this tool showed you for the same; without it, it only shows');

/** What would be done by the look just taken. */
type Shown<Data> = {
  /** Stands for exactly that. */
  readonly digest: string;
  /** "3 ranks would be stopped" */
  readonly would: string;
  readonly owed: readonly Owed[];
  /** What the tool's answer shows of it, before and after. */
  readonly data: Data;
};

/**
 * Shows what would be done, or has it done where `plan` is the digest that this client was shown for the same subject
 * and that still holds. Throws a UserError for any other, and where the server only shows.
 */
export async function showOrDo<Schema extends z.ZodType, Data>(
  { client, signal, progress }: Work,
  wanted: {
    readonly subject: string;
    readonly plan: string | undefined;
    readonly shown: Shown<Data>;
    readonly operation: Operation<Schema>;
    readonly input: z.output<Schema>;
  },
) {
  const { subject, plan, shown, operation, input } = wanted;
  const { name } = operation;
  if (plan === undefined) {
    client.show(subject, shown.digest);
    return {
      say: `${shown.would}. Nothing was changed. Call ${name} again with plan ${shown.digest} to do it.`,
      data: { done: false, digest: shown.digest, ...shown.data, owed: [...shown.owed], left_out: [] },
    };
  }
  client.mustChange();
  client.mustHaveSeen(subject, plan, `call ${name} without plan first`);
  client.mustHaveSeen(
    subject,
    plan === shown.digest ? plan : undefined,
    `what it would do has changed since; call ${name} without plan again`,
  );
  const begun = begin(client.world(), operation, input, { signal, face: 'through an agent' });
  const { run, answer } = await followRun(client.world(), begun, {
    work: client.work,
    seconds: MOST_SECONDS,
    tell: progress,
  });
  const ended = answer?.report.kind === 'run' ? answer.report.ended : undefined;
  return {
    say: ended?.why ?? 'it goes on',
    failed: ended !== undefined && ended.exit !== 0,
    data: {
      done: answer !== undefined,
      ...shown.data,
      ...(run === undefined ? {} : { run }),
      ...(ended === undefined ? {} : { outcome: ended.outcome, why: ended.why }),
      owed: [...(ended?.owed ?? [])],
      left_out: [],
    },
  };
}
