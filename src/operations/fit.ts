import type { z } from 'zod';
import type { Fit, Verdict } from '../domain/fit.ts';
import { gib, plural } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { chooseNodes } from '../files/choose-nodes.ts';
import { readRecipe } from '../files/recipe-file.ts';
import { allocate } from '../planning/allocate.ts';
import { fitOf } from '../planning/fit/fit.ts';
import { fitInputOf } from '../planning/fit/from-recipe.ts';
import type { FitInput } from '../planning/fit/input.ts';
import { readSettings } from '../planning/fit/settings.ts';
import { keyOf, learnedFor } from '../planning/learned.ts';
import { memoryFraction } from '../planning/memory-fraction.ts';
import { allRanks } from '../planning/our-ranks.ts';
import { modelAt } from './fit-model.ts';
import { hostKeyError } from './host-key-error.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Answer, Operation } from './operation.ts';
import { remembered } from './remembered.ts';
import type { World } from './world.ts';

type Input = z.output<typeof inputs.fit>;

const EXITS: Readonly<Record<Verdict, Answer['exit']>> = {
  fits: 0,
  'may boot': 0,
  'does not fit': 1,
  unknown: 1,
};

/** `firstlight fit RECIPE` on the cluster as it is, or `--model …` on what is said alone: every figure with its rule. */
export const fit: Operation<typeof inputs.fit> = {
  name: 'fit',
  summary: 'say whether a model fits, by which numbers, and what would make it fit',
  effect: 'reads',
  input: inputs.fit,
  async run(input, world) {
    const { asked, clearedBytes } =
      input.model === undefined
        ? await onCluster(input, world)
        : { asked: offline(input, input.model), clearedBytes: undefined };
    const { model, engine, layout, memory } = asked;
    const found = withClearing(fitOf(asked), asked, clearedBytes);
    return {
      report: {
        kind: 'fit',
        title: `${model.name}, ${model.scheme.title}, with ${engine} on ${plural(layout.nodes, 'node')}`,
        unified: memory.unified,
        fit: found,
      },
      exit: EXITS[found.verdict],
    };
  },
};

function offline(input: Input, path: string): FitInput {
  if (input.recipe !== undefined)
    throw new UserError(
      'bad-input',
      'a recipe and --model were both named',
      'Name the recipe for the cluster as it is, or --model and what it is to run on.',
    );
  if (input.engine === undefined)
    throw new UserError('bad-input', '--model needs --engine', 'Add --engine vllm or --engine sglang.');
  const { settings, data } = readSettings(input.set);
  const { memory, available } = input;
  if (memory !== undefined && available !== undefined && available > 1.05 * memory)
    throw new UserError(
      'bad-input',
      `--available ${gib(available)} is more than --memory ${gib(memory)}`,
      'Both are of one GPU, or of one node with --unified; what is free is a part of what there is.',
    );
  return {
    model: modelAt(path, input.index),
    engine: input.engine,
    layout: {
      nodes: input.nodes ?? 1,
      tensor: input.tensor ?? 1,
      pipeline: input.pipeline ?? 1,
      expert: input.expert ?? 1,
      data: data ?? 1,
    },
    memory: { unified: input.unified, totalBytes: memory, availableBytes: available },
    context: input.context,
    sequences: input.sequences,
    settings,
  };
}

/** The recipe on the nodes as one look sees them; flags say otherwise where they are given. */
async function onCluster(
  input: Input,
  world: World,
): Promise<{ readonly asked: FitInput; readonly clearedBytes: number | undefined }> {
  if (input.recipe === undefined)
    throw new UserError(
      'bad-input',
      'neither a recipe nor a model was named',
      'firstlight fit RECIPE, or firstlight fit --model DIR --engine vllm --memory 121.69GiB --unified',
    );
  const { recipe } = readRecipe(input.recipe);
  const nodes = chooseNodes(world.cluster, recipe);
  const facts = await look(world, nodes, recipe, { modelHeaders: true });
  for (const node of facts) {
    if (node.reached) continue;
    const error = hostKeyError(node.failure);
    if (error !== undefined) throw error;
  }
  const { settings, data } = readSettings(input.set);
  const engine = input.engine ?? recipe.engines[0] ?? 'sglang';
  const memories = remembered(world);
  const learned = nodes.flatMap(({ name }) => learnedFor(memories, keyOf(recipe, engine, name, facts)));
  const from = fitInputOf({ nodes, facts, recipe, engine, learned });
  // Left to firstlight, the fraction is the one that `up` would launch with, once what is in the way is cleared.
  const own = allRanks(facts).filter(
    ({ record }) => record.recipe === recipe.recipe && record.state !== 'ended',
  );
  const leaving = new Set(own.map(({ record }) => record.name));
  const alone = { settled: new Set<string>(), leaving, alsoGoing: () => [] };
  const { shares } = allocate({ nodes, facts, recipe, engine, remembered: memories, ...alone });
  const fraction = from.settings.fraction ?? memoryFraction(recipe, engine, shares);
  const asked = {
    ...from,
    layout: {
      nodes: input.nodes ?? from.layout.nodes,
      tensor: input.tensor ?? from.layout.tensor,
      pipeline: input.pipeline ?? from.layout.pipeline,
      expert: input.expert ?? from.layout.expert,
      data: data ?? from.layout.data,
    },
    memory: {
      unified: input.unified || from.memory.unified,
      totalBytes: input.memory ?? from.memory.totalBytes,
      availableBytes: input.available ?? from.memory.availableBytes,
      why: from.memory.why,
      ownBytes: input.available === undefined ? from.memory.ownBytes : undefined,
    },
    context: input.context ?? from.context,
    sequences: input.sequences ?? from.sequences,
    settings: { ...from.settings, fraction, ...settings },
    fractionFrom:
      fraction === undefined || from.settings.fraction !== undefined || settings.fraction !== undefined
        ? undefined
        : 'which up would launch with once what is in the way is stopped',
  };
  const known = shares.every(({ memory }) => memory.verdict !== 'unknown');
  const clearedBytes =
    known && input.available === undefined
      ? Math.min(...shares.map(({ memory }) => memory.canGetAfterClearingBytes)) + recipe.memory.reserve
      : undefined;
  return { asked, clearedBytes };
}

/** On the cluster as it is something may be in the way that `up` would stop: that is a change, too, and the first. */
function withClearing(found: Fit, asked: FitInput, clearedBytes: number | undefined): Fit {
  const { availableBytes, unified } = asked.memory;
  if (clearedBytes === undefined || availableBytes === undefined || !unified) return found;
  if (found.verdict === 'fits' || clearedBytes <= availableBytes) return found;
  const { verdict } = fitOf({ ...asked, memory: { ...asked.memory, availableBytes: clearedBytes } });
  if (verdict === found.verdict || verdict === 'does not fit') return found;
  const why = `${gib(clearedBytes)} would be free on each node once what is in the way is stopped: firstlight plan says what`;
  return { ...found, changes: [{ change: 'clearing', to: clearedBytes, verdict, why }, ...found.changes] };
}
