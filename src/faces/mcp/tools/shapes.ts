import { z } from 'zod';
import { STAGES } from '../../../domain/finding.ts';

/** Parts that several tools take or give. */

export const recipeName = z
  .string()
  .max(300)
  .describe(
    'file of the recipe, as from the folder of the cluster file; the resource firstlight://recipes lists them',
  );

export const runNumber = z
  .string()
  .regex(/^\d{1,15}$/, 'is no run')
  .optional()
  .describe('number of a run; the newest if left out');

export const digest = z.string().max(64);

export const stage = z.enum(STAGES);

export const leftOut = z.array(z.string()).describe('what this answer leaves out, and how to get it');

export const owed = z.array(z.strictObject({ node: z.string(), id: z.string(), title: z.string() }));

export const finding = z.strictObject({
  attempt: z.number().int().optional(),
  cause: z.string(),
  node: z.string().optional(),
  stage: z.string().optional(),
  title: z.string(),
  why: z.string(),
  sure: z.number().describe('0 to 1'),
  quotes: z.array(z.string()).describe('node, rank, line and text of the log that shows it'),
  consequences: z.array(z.string()),
  advice: z.array(z.string()),
});

export const consentNeeded = z.strictObject({
  run: z.string(),
  plan: z.string(),
  steps: z.array(
    z.strictObject({
      id: z.string(),
      node: z.string(),
      title: z.string(),
      holds: z.string(),
      user: z.string(),
      comesBack: z.string(),
    }),
  ),
  how: z.array(z.string()).describe('every way in which a person can allow them; an agent has none'),
});
