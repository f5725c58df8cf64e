import { type NodeFacts, valueIf } from '../../domain/facts.ts';
import type { Phase, Step } from '../../domain/plan.ts';
import { list } from '../../domain/units.ts';
import { again, type BringUp, ended, type Move, type Progress } from './progress.ts';

/**
 * Whether root can be had wherever this phase needs it: sudo's password is asked for here, once a run. Undefined when
 * it can; else the run ends consent-needed, or the plan is made again without what was optional.
 */
export async function haveRoot(
  { world }: BringUp,
  progress: Progress,
  phase: Phase,
  facts: readonly NodeFacts[],
): Promise<Move | undefined> {
  const rootless = new Set(progress.rootless);
  const steps = phase.steps.filter(needsRoot);
  for (const node of new Set(steps.map((step) => step.node))) {
    const seen = facts.find((one) => one.node === node);
    const how = seen?.reached ? (valueIf(seen.sudo) ?? 'none') : 'none';
    if (how === 'free') continue;
    const here = steps.filter((step) => step.node === node);
    const purpose = list(here.map((step) => step.title));
    if (how === 'password' && (await world.secrets.sudoPassword(node, purpose)) !== undefined) continue;
    const must = here.filter((step) => step.optional !== true);
    if (must.length > 0) {
      const what = must.map((step) => step.title).join(', ');
      const why =
        how === 'none'
          ? `${what} on ${node} needs root, and sudo does not let this user have it`
          : `${what} on ${node} needs sudo's password; give it on a terminal, or with --sudo-password-file ${node}=FILE`;
      return ended({ outcome: 'consent-needed', why, exit: 2 });
    }
    rootless.add(node);
  }
  return rootless.size > progress.rootless.size ? again({ ...progress, rootless }) : undefined;
}

function needsRoot(step: Step): boolean {
  return step.command.sudo === true;
}
