import type { Node } from '../domain/cluster.ts';
import { type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Blocker } from '../domain/plan.ts';
import { quotePlainly } from '../domain/quote.ts';
import { type EngineName, imageOf, type Recipe, softwareOf } from '../domain/recipe.ts';
import { list } from '../domain/units.ts';
import { programsOf } from '../knowledge/engines/rank-shape.ts';
import { fabricOf } from './fabric.ts';
import { reachedOf } from './our-ranks.ts';

type Input = {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
};

/** The model and the engine must lie on every node before a launch; what is missing, with the command that mends it. */
export function supplyBlockers(input: Input): readonly Blocker[] {
  return input.nodes.flatMap((node, rank) => {
    const there = reachedOf(input.facts, node.name);
    return there === undefined
      ? []
      : [...modelBlockers(node, rank, there, input), ...engineBlockers(node, there, input)];
  });
}

function modelBlockers(node: Node, rank: number, there: ReachedFacts, input: Input): readonly Blocker[] {
  const model = valueIf(there.model);
  if (model === undefined) return [];
  const { path, model: name } = input.recipe;
  if (!model.present)
    return [
      {
        cause: 'model-path-missing-on-worker',
        node: node.name,
        title: `${name} is not on ${node.name}: there is no ${path}.`,
        advice: copyAdvice(rank, input),
        userError: false,
      },
    ];
  if (model.missingFiles.length === 0) return [];
  const some = model.missingFiles.slice(0, 3);
  const more = model.missingFiles.length - some.length;
  const which = list(more > 0 ? [...some, `${more} more`] : some);
  const pointers = model.pointerFiles?.length === model.missingFiles.length;
  return [
    {
      cause: pointers ? 'weights-are-lfs-pointers' : 'weights-truncated',
      node: node.name,
      title: pointers
        ? `The model on ${node.name} holds pointers of git-lfs in place of weights: ${which} in ${path}.`
        : `The model on ${node.name} is not whole: ${which} missing or empty in ${path}.`,
      advice: copyAdvice(rank, input),
      userError: false,
    },
  ];
}

/** The exact copy from a node that has the whole model, over the fabric where both have an address there. */
function copyAdvice(rank: number, input: Input): readonly string[] {
  const { nodes, facts, recipe } = input;
  const from = nodes.findIndex((node, other) => other !== rank && hasModel(reachedOf(facts, node.name)));
  const source = nodes[from];
  const target = nodes[rank];
  if (source === undefined || target === undefined)
    return [
      `No node has it whole. On ${target?.name ?? 'each node'}: hf download ${recipe.model} --local-dir ${quotePlainly(recipe.path)}`,
    ];
  const path = quotePlainly(`${recipe.path}/`);
  const fabric = fabricOf(nodes, facts)[rank]?.address;
  const user = valueIf(reachedOf(facts, target.name)?.host)?.user ?? target.user;
  const to = `${user === undefined ? '' : `${user}@`}${fabric ?? target.ssh.replace(/^.*@/, '')}`;
  return [
    `On ${source.name}: rsync -a --info=progress2 --mkpath ${path} ${to}:${path}`,
    'A copy over the fabric by rsync takes about 2.5 minutes per 60 GB.',
  ];
}

function hasModel(facts: ReachedFacts | undefined): boolean {
  const model = valueIf(facts?.model);
  return model?.present === true && model.missingFiles.length === 0;
}

function engineBlockers(node: Node, there: ReachedFacts, input: Input): readonly Blocker[] {
  const { run } = input.recipe;
  return run.in !== 'process' ? imageBlockers(node, there, run, input) : programBlockers(node, there, input);
}

function imageBlockers(
  node: Node,
  there: ReachedFacts,
  run: Exclude<Recipe['run'], { in: 'process' }>,
  { engine, facts, nodes, recipe }: Input,
): readonly Blocker[] {
  const runtime = run.in;
  const image = imageOf(recipe, engine);
  const base = { node: node.name, engineOnly: true } as const;
  if (image === undefined)
    return [
      {
        ...base,
        cause: 'image-missing',
        title: `The recipe names no image for ${engine}.`,
        advice: [`Add run.image.${engine}, or take ${engine} out of engines.`],
        userError: true,
      },
    ];
  const found = (valueIf(there.engines) ?? []).find(
    ({ where }) => where.in === runtime && where.image === image,
  );
  if (found === undefined) {
    if (!there.engines.known) return runtimeBlockers(node, there, runtime);
    const holder = nodes.find(
      (other) =>
        other.name !== node.name &&
        (valueIf(reachedOf(facts, other.name)?.engines) ?? []).some(
          ({ where }) => where.in === runtime && where.image === image,
        ),
    );
    const to = fabricOf(nodes, facts)[nodes.indexOf(node)]?.address ?? node.name;
    return [
      ...runtimeBlockers(node, there, runtime),
      {
        ...base,
        cause: 'image-missing',
        title: `The image ${image} is not on ${node.name}; images are never pulled unasked.`,
        advice: [
          `On ${node.name}: ${runtime} pull ${image}`,
          ...(holder === undefined
            ? []
            : [`Or on ${holder.name}: ${runtime} save ${image} | ssh ${to} ${runtime} load`]),
        ],
        userError: false,
      },
    ];
  }
  const arch = found.where.in !== 'process' ? dockerArch(found.where.arch) : '';
  const own = dockerArch(valueIf(there.host)?.arch ?? '');
  if (arch === '' || own === '' || arch === own) return [];
  return [
    {
      ...base,
      cause: 'image-wrong-architecture',
      title: `The image ${image} is for ${arch}, and ${node.name} is ${own}.`,
      advice: [
        `Name an image for ${own} in run.image.${engine}; then on ${node.name}: ${runtime} pull IMAGE`,
      ],
      userError: true,
    },
  ];
}

/** A runtime that does not answer this user at all. */
function runtimeBlockers(node: Node, there: ReachedFacts, runtime: 'docker' | 'podman'): readonly Blocker[] {
  if (there.containers.known) return [];
  const { why } = there.containers;
  const refused = /permission denied|group|sudo/i.test(why);
  return [
    {
      cause: refused ? 'docker-group-missing' : 'unknown',
      node: node.name,
      title: `${runtime === 'docker' ? 'Docker' : 'Podman'} on ${node.name} could not be asked: ${why}.`,
      advice: refused
        ? [`On ${node.name}: sudo usermod -aG docker "$USER", then log in again`]
        : [`On ${node.name}: ${runtime} info`],
      userError: false,
      engineOnly: false,
    },
  ];
}

/** `aarch64` and `x86_64` as Docker calls them. */
function dockerArch(arch: string): string {
  return arch === 'aarch64' ? 'arm64' : arch === 'x86_64' ? 'amd64' : arch;
}

function programBlockers(node: Node, there: ReachedFacts, { recipe, engine }: Input): readonly Blocker[] {
  if (!there.engines.known) return [];
  const here = there.engines.value.flatMap(({ where }) => (where.in === 'process' ? [where.program] : []));
  return programsOf(recipe, engine)
    .filter((program) => !here.includes(program))
    .map((program) => ({
      cause: 'engine-missing',
      node: node.name,
      title: `${program} is not on ${node.name}.`,
      advice: [
        engine === 'vllm-ray' && /(^|\/)ray$/.test(program)
          ? 'Install ray there beside vllm, and name the environment that has both in run.venv.'
          : `Install ${softwareOf(engine)} there, or name its program in run.command.${engine} or run.venv.`,
      ],
      userError: false,
      engineOnly: true,
    }));
}
