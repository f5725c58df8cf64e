import { type NodeFacts, valueIf } from '../domain/facts.ts';
import { list, plural } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { runUndo } from '../remote/undo.ts';
import { inRun } from './in-run.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Answer, Operation } from './operation.ts';
import { owedOf, pendingUndo } from './owed.ts';
import { tellLook } from './tell-look.ts';
import { endOf, tellStep } from './tell-step.ts';
import { unreachedSentences } from './unreached-sentences.ts';
import type { World } from './world.ts';

/** Gives back what was stopped, newest first, through the undo that lies on each node; everything when no ids are given. */
export async function giveBack(world: World, ids: readonly string[]): Promise<Answer> {
  const nodes = world.cluster.nodes;
  return inRun(
    world,
    { operation: 'restore', nodes, recipe: undefined, recipeDigest: undefined },
    async (recorder, inside) => {
      const facts = await tellLook(inside, recorder, { attempt: 1, nodes, recipe: undefined });
      const all = pendingUndo(facts);
      const strange = ids.filter((id) => !all.some((record) => record.id === id));
      if (strange.length > 0) {
        throw new UserError(
          'bad-input',
          `nothing with the id ${strange.join(', ')} is owed`,
          all.length === 0
            ? 'everything is given back'
            : `owed are: ${all.map((record) => record.id).join(', ')}`,
        );
      }
      if (ids.length === 0) keepClearOfRanks(facts, all);
      const wanted = all
        .filter((record) => ids.length === 0 || ids.includes(record.id))
        .sort((a, b) => b.at.localeCompare(a.at));
      // Ctrl-C lets the step that runs come to its end: nothing is left half given back.
      const whole = new AbortController().signal;
      let missing = 0;
      // Where sudo refused once it is not asked again; what needs no root is given back all the same.
      const refused = new Map<string, string>();
      for (const record of wanted) {
        inside.signal.throwIfAborted();
        const { id, node, title, sudo } = record;
        if (sudo && refused.has(node)) continue;
        const end = await tellStep(
          inside,
          recorder,
          { id, node, title, phase: 'restore', kind: 'give-back', undo: 'nothing' },
          async () => {
            const ran = await runUndo(inside.hosts.of(node), { id, sudo }, { signal: whole });
            const wants = ran.kind === 'refused' ? ran.why : undefined;
            return { ...endOf(ran), wants };
          },
        );
        if (end.result !== 'done') missing += 1;
        if (end.wants !== undefined) {
          const why =
            end.wants === 'sudo-needs-password'
              ? `${title} on ${node} needs sudo's password; give it on a terminal, or with --sudo-password-file ${node}=FILE`
              : `${title} on ${node} needs root, and sudo did not let it: ${end.text}`;
          refused.set(node, why);
        }
      }
      const [why] = refused.values();
      if (why !== undefined) return { outcome: 'consent-needed', why, exit: 2 };
      const unseen = unreachedSentences(facts);
      if (missing > 0 || unseen.length > 0)
        return {
          outcome: 'not-serving',
          why: [
            missing === 0 ? '' : `${missing} of ${wanted.length} could not be given back; the steps say why`,
            ...unseen,
          ]
            .join(' ')
            .trim(),
          exit: 1,
        };
      return {
        outcome: 'restored',
        why:
          wanted.length === 0
            ? 'nothing was owed'
            : `${plural(wanted.length, 'thing')} given back, and seen to run`,
        exit: 0,
      };
    },
    async (now) => owedOf(await look(now, nodes, undefined)),
  );
}

/**
 * What was stopped to make room would take that room from the ranks that run in it, and on unified memory from the
 * whole node. Throws a UserError then; whoever names the ids means it.
 */
function keepClearOfRanks(
  facts: readonly NodeFacts[],
  all: readonly { readonly id: string; readonly node: string }[],
): void {
  const running = facts.flatMap((seen) =>
    seen.reached
      ? (valueIf(seen.ranks) ?? [])
          .filter(({ state }) => state !== 'ended')
          .map(({ recipe }) => ({ node: seen.node, recipe }))
      : [],
  );
  const crowded = all.filter(({ node }) => running.some((rank) => rank.node === node));
  if (crowded.length === 0) return;
  const nodes = [...new Set(crowded.map(({ node }) => node))];
  const recipes = running.filter(({ node }) => nodes.includes(node)).map(({ recipe }) => recipe);
  throw new UserError(
    'ranks-run',
    `${list([...new Set(recipes)])} runs on ${list(nodes)}, in the room that ${plural(crowded.length, 'thing')} gave`,
    `firstlight down --restore stops it first; to give back beside it, name what: firstlight restore ${all.map(({ id }) => id).join(' ')}`,
  );
}

/** `firstlight restore`: gives back what was stopped for a run and is not back. */
export const restore: Operation<typeof inputs.restore> = {
  name: 'restore',
  summary: 'give back what was stopped for a run',
  effect: 'changes',
  input: inputs.restore,
  run: (input, world) => giveBack(world, input.ids),
};
