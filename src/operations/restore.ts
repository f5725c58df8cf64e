import { valueIf } from '../domain/facts.ts';
import { UserError } from '../domain/user-error.ts';
import { runUndo } from '../remote/undo.ts';
import { inRun } from './in-run.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Answer, Operation } from './operation.ts';
import { owedOf } from './owed.ts';
import type { World } from './world.ts';

/** Gives back what was stopped, newest first, through the undo that lies on each node; everything when no ids are given. */
export async function giveBack(world: World, ids: readonly string[]): Promise<Answer> {
  const nodes = world.cluster.nodes;
  return inRun(
    world,
    { operation: 'restore', nodes, recipe: undefined, recipeDigest: undefined },
    async (recorder, inside) => {
      const started = world.clock.now();
      const facts = await look(world, nodes, undefined);
      recorder.emit({ type: 'looked', attempt: 1, milliseconds: world.clock.now() - started, facts });
      const all = facts.flatMap((node) =>
        node.reached
          ? (valueIf(node.owed) ?? [])
              .filter((record) => record.state === 'pending')
              .map((record) => ({ ...record, node: node.node }))
          : [],
      );
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
      const wanted = all
        .filter((record) => ids.length === 0 || ids.includes(record.id))
        .sort((a, b) => b.at.localeCompare(a.at));
      let missing = 0;
      for (const record of wanted) {
        inside.signal.throwIfAborted();
        const from = world.clock.now();
        const step = { id: record.id, node: record.node, title: record.title, kind: 'give-back' };
        recorder.emit({ type: 'step-started', ...step, phase: 'restore', undo: 'nothing' });
        const ran = await runUndo(
          world.hosts.of(record.node),
          { id: record.id, sudo: record.sudo },
          { signal: world.signal },
        );
        const done = ran.kind === 'ran' && ran.code === 0;
        if (!done) missing += 1;
        const text =
          ran.kind === 'ran'
            ? `${ran.stdout} ${ran.stderr}`.trim()
            : ran.kind === 'lost'
              ? ran.failure.sentence
              : ran.kind === 'refused'
                ? ran.text
                : `no end after ${ran.seconds} s`;
        recorder.emit({
          type: 'step-ended',
          ...step,
          result: done ? 'done' : ran.kind === 'lost' ? 'lost' : 'failed',
          text,
          milliseconds: world.clock.now() - from,
        });
        if (ran.kind === 'refused' && ran.why === 'sudo-needs-password') {
          return {
            outcome: 'consent-needed',
            why: `${record.title} on ${record.node} needs sudo's password; give it on a terminal, or with --sudo-password-file ${record.node}=FILE`,
            exit: 2,
          };
        }
      }
      const unseen = facts.flatMap((node) =>
        node.reached ? [] : [`${node.node} was not reached: ${node.failure.sentence}`],
      );
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
            : `${wanted.length === 1 ? '1 thing' : `${wanted.length} things`} given back, and seen to run`,
        exit: 0,
      };
    },
    async () => owedOf(await look(world, nodes, undefined)),
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
