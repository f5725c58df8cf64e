import type { z } from 'zod';
import type { Report } from '../domain/report.ts';
import type { World } from './world.ts';

export type Answer = { readonly report: Report; readonly exit: 0 | 1 | 2 | 3 };

/** One verb a user has. Its CLI flags come from the schema's keys and descriptions. */
export type Operation<Schema extends z.ZodType = z.ZodType> = {
  readonly name: string;
  readonly summary: string;
  readonly effect: 'reads' | 'changes' | 'destroys';
  readonly input: Schema;
  run(input: z.output<Schema>, world: World): Promise<Answer>;
};
