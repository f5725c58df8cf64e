import { script } from '../domain/command.ts';
import { digestOf } from '../domain/digest.ts';
import type { Holder, ReachedFacts } from '../domain/facts.ts';
import type { Step } from '../domain/plan.ts';
import { gib, plural } from '../domain/units.ts';
import { leftovers } from './our-ranks.ts';
import { CONTAINER_RUNS_SH, END_ALL_SH, REMOVE_CONTAINER_SH } from './step-scripts.ts';

/**
 * Steps that end what earlier runs of ours left on a node and no record of an ended rank stands for. Nobody is asked:
 * it is ours, told by the mark or the label that our own runner gave it.
 */
export function orphanSteps(facts: ReachedFacts): readonly Step[] {
  return leftovers(facts).flatMap((holder) => orphanStep(holder, facts.node));
}

function orphanStep({ owner, identity, bytes }: Holder, node: string): readonly Step[] {
  if (owner.kind !== 'rank' || owner.orphan === undefined) return [];
  const { name, orphan } = owner;
  const { container, processes } = orphan;
  const kind = container === undefined ? ('stop-process' as const) : ('stop-container' as const);
  const what =
    container === undefined
      ? plural(processes.length, 'process', 'processes')
      : `container firstlight-${name}`;
  return [
    {
      id: digestOf({ node, kind, identity }).slice(0, 4),
      phase: 'clear',
      kind,
      node,
      title: `End what our rank ${name} left: ${what}`,
      why: `${orphan.why}; ${gib(bytes)} are held for nobody.`,
      risk: 'It is of an earlier run of ours; nothing is lost.',
      needsConsent: false,
      ...(container === undefined
        ? {
            command: script(
              END_ALL_SH,
              processes.flatMap(({ pid, startTicks }) => [String(pid), startTicks]),
              { timeoutSeconds: 60 },
            ),
          }
        : {
            guard: script(CONTAINER_RUNS_SH, [container.runtime, container.id], { timeoutSeconds: 20 }),
            command: script(REMOVE_CONTAINER_SH, [container.runtime, container.id], { timeoutSeconds: 60 }),
          }),
      undo: { kind: 'nothing' },
    },
  ];
}
