import type { Node } from '../domain/cluster.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';
import { argsOf, type EngineName, type Recipe, softwareOf } from '../domain/recipe.ts';
import { type EngineScene, knownToFail } from '../knowledge/known-bad.ts';
import { reachedOf } from './our-ranks.ts';

/** That an engine failed on these hosts before, and with what: by the journal. */
export type FailedBefore = {
  readonly model: string;
  readonly engine: EngineName;
  /** What it was then: the image's id, else the version; where that is another one now, it is tried again. */
  readonly build: string;
  readonly cause: string;
  readonly run: string;
};

type ChoiceInput = {
  readonly nodes: readonly Pick<Node, 'name'>[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly failedBefore: readonly FailedBefore[];
};

/**
 * Why an engine is not worth a try here, as one clause that follows its name; undefined where nothing speaks against
 * it. Published failures count by version, GPU, quantisation and layout; failures of earlier runs by the very build.
 */
export function whySkip(engine: EngineName, input: ChoiceInput): string | undefined {
  const known = knownToFail(sceneOf(engine, input));
  if (known !== undefined) return `${known.why} (${known.cause}, ${known.source})`;
  const build = buildOf(engine, input.nodes, input.facts);
  const before = input.failedBefore.find(
    (one) =>
      one.engine === engine && one.model === input.recipe.model && build !== undefined && one.build === build,
  );
  return before === undefined
    ? undefined
    : `failed with the same build in run ${before.run}, where another engine served: ${before.cause}`;
}

/** What identifies an engine's build on the head: its image, else its version. Undefined where that was not seen. */
export function buildOf(
  engine: EngineName,
  nodes: readonly Pick<Node, 'name'>[],
  facts: readonly NodeFacts[],
): string | undefined {
  const [head] = nodes;
  const found = head === undefined ? [] : installed(engine, head.name, facts);
  const where = found[0]?.where;
  if (where !== undefined && where.in !== 'process') return where.imageId;
  return found.flatMap(({ version }) => valueIf(version) ?? [])[0];
}

function sceneOf(engine: EngineName, { nodes, facts, recipe }: ChoiceInput): EngineScene {
  const gpus = nodes.map(({ name }) => valueIf(reachedOf(facts, name)?.gpus));
  const config = nodes.flatMap(({ name }) => {
    const model = valueIf(reachedOf(facts, name)?.model);
    return model?.present ? [valueIf(model.config) ?? {}] : [];
  })[0];
  const text = JSON.stringify(config ?? {}).toLowerCase();
  return {
    engine,
    versions: nodes.flatMap(({ name }) =>
      installed(engine, name, facts).flatMap(({ version }) => valueIf(version) ?? []),
    ),
    gpus: gpus.every((one) => one !== undefined) ? gpus.flat().map((gpu) => gpu?.name ?? '') : undefined,
    nodes: nodes.length,
    quantisation: /"quant_(?:method|algo)":"([^"]+)"/.exec(text)?.[1] ?? '',
    experts: /"(?:num_experts|n_routed_experts|num_local_experts)":[1-9]/.test(text),
    args: argsOf(recipe, engine),
    env: recipe.env,
  };
}

function installed(engine: EngineName, node: string, facts: readonly NodeFacts[]) {
  return (valueIf(reachedOf(facts, node)?.engines) ?? []).filter(
    (one) => one.engine === engine || one.engine === softwareOf(engine),
  );
}
