import { z } from 'zod';
import type { Step } from './plan.ts';

const LITERALS = 3;

/** A name, or one with `*` for any letters in it; never a wildcard alone, which would allow what nobody thought of. */
const pattern = z
  .string()
  .min(1)
  .max(200)
  .refine(
    (text) => !text.includes('*') || text.replaceAll('*', '').length >= LITERALS,
    `must say more than a wildcard: at least ${LITERALS} letters beside the *`,
  );

const rule = z
  .strictObject({
    node: pattern.describe('name of the node in the cluster file'),
    kind: z.enum(['container', 'unit', 'process']).describe('what it is'),
    name: pattern.optional().describe('as check and plan call it: container, unit or short command'),
    image: pattern.optional().describe('image of a container'),
    user: pattern.describe('whose it is'),
  })
  .refine((one) => one.name !== undefined || one.image !== undefined, 'needs name or image')
  .refine((one) => one.image === undefined || one.kind === 'container', 'only containers have an image');

/** policy.yaml beside the cluster file: what its owner allows to be stopped without being asked each time. */
export const policySchema = z.strictObject({
  allow: z.array(rule).describe('steps on foreign work that need no further consent'),
});

export type Policy = z.output<typeof policySchema>;

/** Number of the first rule, from 1, that allows this step; all that the rule names must fit. Undefined for none. */
export function ruleFor(policy: Policy, step: Pick<Step, 'node' | 'target'>): number | undefined {
  const { node, target } = step;
  if (target === undefined) return undefined;
  const at = policy.allow.findIndex(
    (one) =>
      one.kind === target.kind &&
      fits(one.node, node) &&
      fits(one.user, target.user) &&
      (one.name === undefined || fits(one.name, target.name)) &&
      (one.image === undefined || (target.image !== undefined && fits(one.image, target.image))),
  );
  return at === -1 ? undefined : at + 1;
}

/** Whether a rule's `node` may mean the node of that name. */
export function meansNode(rule: Policy['allow'][number], node: string): boolean {
  return fits(rule.node, node);
}

function fits(wanted: string, text: string): boolean {
  if (!wanted.includes('*')) return wanted === text;
  const parts = wanted.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}
