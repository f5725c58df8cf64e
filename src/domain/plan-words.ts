import { type NodeFacts, valueIf } from './facts.ts';
import type { Plan } from './plan.ts';

/** What the recipe of a plan whose ranks all run does now, behind its name: whether each was seen to answer. */
export function runsAlready(plan: Plan, facts: readonly NodeFacts[]): string {
  const records = facts.flatMap((seen) => (seen.reached ? (valueIf(seen.ranks) ?? []) : []));
  const services = plan.phases.flatMap((phase) => phase.services);
  const serves = services.every(({ name }) =>
    records.some((record) => record.name === name && record.servingSince !== undefined),
  );
  return serves
    ? `serves already on ${plan.ranks[0]}, nothing to do`
    : 'runs already and was not seen to serve yet, nothing to launch';
}
