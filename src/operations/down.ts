import { plural } from '../domain/units.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { orphanSteps } from '../planning/orphan-step.ts';
import { aliveRanks, orphanRanks } from '../planning/our-ranks.ts';
import { applyStep } from './apply.ts';
import { inRun } from './in-run.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import { awaitMemory, memoryTargets } from './memory-back.ts';
import type { Operation } from './operation.ts';
import { owedOf } from './owed.ts';
import { giveBack } from './restore.ts';
import { stopRanks } from './stop-ranks.ts';
import { tellLook } from './tell-look.ts';
import { unreachedSentences } from './unreached-sentences.ts';

/** `firstlight down`: stops the ranks that firstlight started, head first; with --restore gives back what was stopped for them. */
export const down: Operation<typeof inputs.down> = {
  name: 'down',
  summary: 'stop what firstlight started; with --restore also give back what it stopped',
  effect: 'changes',
  input: inputs.down,
  async run(input, world) {
    const only = input.recipe === undefined ? undefined : readRecipe(input.recipe).recipe.recipe;
    const nodes = world.cluster.nodes;
    const stopped = await inRun(
      world,
      { operation: 'down', nodes, recipe: only, recipeDigest: undefined },
      async (recorder, inside) => {
        const facts = await tellLook(inside, recorder, { attempt: 1, nodes, recipe: undefined });
        const ours = [...aliveRanks(facts), ...orphanRanks(facts)]
          .filter(({ record }) => only === undefined || record.recipe === only)
          .map(({ node, record }) => ({ ...record, node }));
        let fine = await stopRanks(inside, recorder, ours, 'asked for by down');
        const left =
          only === undefined ? facts.flatMap((seen) => (seen.reached ? orphanSteps(seen) : [])) : [];
        for (const step of left) fine = (await applyStep(inside, recorder, step)).result !== 'failed' && fine;
        await awaitMemory(inside, recorder, memoryTargets(ours, facts));
        const unseen = unreachedSentences(facts);
        const said = unseen.join(' ');
        if (!fine)
          return {
            outcome: 'not-serving',
            why: `not every rank could be stopped; see the steps above. ${said}`.trim(),
            exit: 1,
          };
        if (unseen.length > 0)
          return { outcome: 'not-serving', why: `${said} What runs there was not stopped.`, exit: 1 };
        return {
          outcome: 'stopped',
          why: stoppedWords(ours.length, new Set(left.map(({ node }) => node)).size),
          exit: 0,
          ...(input.restore ? { givesBack: true as const } : {}),
        };
      },
      async (now) => owedOf(await look(now, nodes, undefined)),
    );
    if (!input.restore || stopped.exit !== 0) return stopped;
    return giveBack(world, []);
  },
};

function stoppedWords(ranks: number, nodes: number): string {
  const also = nodes === 0 ? '' : `what earlier ranks had left was ended on ${plural(nodes, 'node')}`;
  if (ranks === 0) return also === '' ? 'nothing of ours was running' : also;
  return `${plural(ranks, 'rank')} stopped${also === '' ? '' : `, and ${also}`}`;
}
