import { z } from 'zod';
import type { NodeMemoryPlan } from '../../../domain/plan.ts';
import { runsAlready } from '../../../domain/plan-words.ts';
import { fitWords } from '../../../domain/run-words.ts';
import { plural } from '../../../domain/units.ts';
import { aside } from '../../../operations/begin.ts';
import { planOperation } from '../../../operations/plan.ts';
import { recipeBeside } from '../../../operations/recipes.ts';
import { inGib, newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { leftOut, recipeName } from './shapes.ts';

const MOST_STEPS = 40;

const input = z.strictObject({ recipe: recipeName });
const figure = z.number().nullable().describe('null where the verdict is unknown');

const output = z.strictObject({
  digest: z.string().describe('hand this to up'),
  recipe: z.string(),
  engine: z.string(),
  state: z.enum(['empty', 'work', 'blocked']),
  fits: z
    .string()
    .describe('whether the model fits; where its ranks run already, that and whether they serve'),
  memory: z.array(
    z.strictObject({
      node: z.string(),
      needsGib: figure,
      errorGib: figure,
      canGetGib: figure,
      canGetAfterClearingGib: figure,
      verdict: z.string(),
    }),
  ),
  steps: z.array(
    z.strictObject({
      id: z.string(),
      node: z.string(),
      phase: z.string(),
      title: z.string(),
      asks: z.boolean().describe("stops somebody's work: runs only with a person's consent"),
      allowedBy: z.string().optional().describe('where the owner of the cluster has allowed it beforehand'),
      undo: z.string(),
    }),
  ),
  ranks: z.array(z.string()),
  blockers: z.array(
    z.strictObject({ node: z.string().optional(), title: z.string(), advice: z.array(z.string()) }),
  ),
  warnings: z.array(z.string()),
  left_out: leftOut,
});

/** One node's predicted memory, GiB; where whether it fits is not known, no figure stands for it. */
export function memoryOf(node: NodeMemoryPlan): z.infer<typeof output>['memory'][number] {
  const seen = (bytes: number): number | null => (node.verdict === 'unknown' ? null : inGib(bytes));
  return {
    node: node.node,
    needsGib: seen(node.sumBytes),
    errorGib: seen(node.errorBytes),
    canGetGib: seen(node.canGetBytes),
    canGetAfterClearingGib: seen(node.canGetAfterClearingBytes),
    verdict: node.verdict,
  };
}

/** What `up` would do now; only a plan that this client was shown can be carried out. */
export const planTool: Tool<typeof input, typeof output> = {
  name: 'plan',
  title: 'Plan a bring-up',
  about:
    'Says what up would do now, step by step, whether the model fits, and which steps stop foreign work and need a person. Changes nothing. Its digest is what up takes.',
  input,
  output,
  effect: 'reads',
  async run({ recipe }, { client, signal }) {
    const world = aside(client.world(), { signal, face: 'through an agent' });
    const path = recipeBeside(world, recipe);
    const { report } = await planOperation.run(
      { recipe: path, why: false, replace: false, anew: false },
      world,
    );
    if (report.kind !== 'plan') throw new Error('plan gave another report');
    const { plan, facts, allowed = [] } = report;
    const allowedBy = new Map(allowed.map(({ id, by }) => [id, by]));
    client.show(`up ${path}`, plan.digest);
    const out = newLeftOut();
    const steps = plan.phases.flatMap((phase) => phase.steps);
    const asks = steps.filter((step) => step.needsConsent);
    const open = asks.length - allowedBy.size;
    const consent = [
      ...(allowedBy.size > 0 ? [`${allowedBy.size} allowed by the owner's policy.yaml`] : []),
      open === 0 ? 'none asks a person' : `${open} ${open === 1 ? 'needs' : 'need'} a person's consent`,
    ].join(', ');
    const runs = plan.state === 'empty' ? `${plan.recipe.recipe} ${runsAlready(plan, facts)}` : undefined;
    return {
      say: `${runs ?? `${fitWords(plan)}; ${plural(steps.length, 'step')}, ${consent}`}; plan ${plan.digest}.`,
      data: {
        digest: plan.digest,
        recipe: plan.recipe.recipe,
        engine: plan.engine,
        state: plan.state,
        fits: runs ?? fitWords(plan),
        memory: plan.memory.map(memoryOf),
        steps: out
          .first(steps, MOST_STEPS, 'steps', 'firstlight plan shows all in a terminal')
          .map(({ id, node, phase, title, needsConsent, undo }) => ({
            id,
            node,
            phase,
            title,
            asks: needsConsent,
            ...(allowedBy.has(id) ? { allowedBy: allowedBy.get(id) } : {}),
            undo:
              undo.kind === 'command'
                ? undo.title
                : undo.kind === 'irreversible'
                  ? `cannot be brought back: ${undo.why}`
                  : 'nothing to undo',
          })),
        ranks: plan.ranks.map((node, rank) => `rank ${rank} on ${node}`),
        blockers: plan.blockers.map(({ node, title, advice }) => ({
          ...(node === undefined ? {} : { node }),
          title,
          advice: [...advice],
        })),
        warnings: plan.warnings.map(({ title, advice }) => `${title}: ${advice}`),
        left_out: [...out.said, "the ranks' whole commands; firstlight plan --verbose shows them"],
      },
    };
  },
};
