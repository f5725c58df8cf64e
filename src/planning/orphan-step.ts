import { script } from '../domain/command.ts';
import { digestOf } from '../domain/digest.ts';
import type { Holder, ReachedFacts } from '../domain/facts.ts';
import type { Step } from '../domain/plan.ts';
import { gib, plural } from '../domain/units.ts';
import { leftovers } from './our-ranks.ts';
import { END_ALL_SH } from './step-scripts.ts';

/**
 * Steps that end what earlier runs of ours left on a node and no record of an ended rank stands for. Nobody is asked:
 * it is ours, told by the mark that this login's own runner gave it, never by a name.
 */
export function orphanSteps(facts: ReachedFacts): readonly Step[] {
  return leftovers(facts).flatMap((holder) => orphanStep(holder, facts.node));
}

function orphanStep({ owner, identity, bytes }: Holder, node: string): readonly Step[] {
  if (owner.kind !== 'rank' || owner.orphan === undefined) return [];
  const { name, orphan } = owner;
  const { processes } = orphan;
  const kind = 'stop-process';
  return [
    {
      id: digestOf({ node, kind, identity }).slice(0, 4),
      phase: 'clear',
      kind,
      node,
      title: `End what our rank ${name} left: ${plural(processes.length, 'process', 'processes')}`,
      why: `${orphan.why}; ${gib(bytes)} are held for nobody.`,
      risk: 'It is of an earlier run of ours; nothing is lost.',
      needsConsent: false,
      command: script(
        END_ALL_SH,
        processes.flatMap(({ pid, startTicks }) => [String(pid), startTicks]),
        { timeoutSeconds: 60 },
      ),
      undo: { kind: 'nothing' },
    },
  ];
}
