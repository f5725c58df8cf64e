import type { Node } from '../domain/cluster.ts';
import { digestOf } from '../domain/digest.ts';
import { type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Service } from '../domain/plan.ts';
import {
  type EngineName,
  imageOf,
  type Recipe,
  type RecipeEdit,
  servedName,
  softwareOf,
} from '../domain/recipe.ts';
import type { RankCommand } from '../knowledge/engines/engine.ts';
import { engines } from '../knowledge/engines/index.ts';
import { activeRdma, fabricOf } from './fabric.ts';
import { reachedOf } from './our-ranks.ts';

type Input = {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly recipeDigest: string;
  readonly edits: readonly RecipeEdit[];
  readonly engine: EngineName;
  readonly fraction: number | undefined;
  /** Ranks that run already, to be followed only. */
  readonly running: ReadonlySet<number>;
};

/** Every rank of the launch, workers first and the head last; empty while a node or an address is missing. */
export function servicesOf(input: Input): readonly Service[] {
  const { nodes, facts, recipe, engine } = input;
  const seen = nodes.map((node) => reachedOf(facts, node.name));
  const fabrics = fabricOf(nodes, facts);
  const addresses = fabrics.flatMap((fabric) => (fabric === undefined ? [] : [fabric.address]));
  if (seen.includes(undefined) || (nodes.length > 1 && addresses.length < nodes.length)) return [];
  if (recipe.run.in !== 'process' && imageOf(recipe, engine) === undefined) return [];
  const rdma = seen.map((there) => (there === undefined ? [] : activeRdma(there)));
  const everywhere = rdma.every((devices) => devices.length > 0);
  const services = seen.flatMap((there, rank): readonly Service[] => {
    if (there === undefined) return [];
    const command = engines[engine].rank({
      recipe,
      rank,
      addresses,
      interfaceName: fabrics[rank]?.interfaceName,
      rdmaDevices: everywhere ? (rdma[rank] ?? []) : [],
      memoryFraction: input.fraction,
      facts: there,
    });
    return [serviceOf(rank, there, command, input, nodes.length > 1 ? addresses[rank] : undefined)];
  });
  return services.reverse();
}

function serviceOf(
  rank: number,
  facts: ReachedFacts,
  command: RankCommand,
  input: Input,
  address: string | undefined,
): Service {
  const { recipe, engine, recipeDigest, edits } = input;
  const { run } = recipe;
  return {
    name: `${recipe.recipe}-r${rank}`,
    node: facts.node,
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine,
    in: run.in,
    argv: run.in === 'process' ? command.argv : containerRun(command, facts, input),
    env: command.env,
    secretEnv: command.secretEnv ?? {},
    recipe: recipe.recipe,
    recipeDigest,
    effectiveDigest: digestOf(recipe),
    edits,
    ...(command.health === undefined
      ? {}
      : { healthPort: command.health.port, healthAddress: command.health.address }),
    servedName: servedName(recipe),
    ranks: input.nodes.length,
    ...(address === undefined ? {} : { address }),
    ...(input.running.has(rank) ? { running: true } : {}),
  };
}

/**
 * `docker run` or `podman run` for one rank: the host's network, IPC and locked memory, without which NCCL falls back
 * to TCP in silence (spark.md 4); no `--rm` and no restart policy, since logs must outlive the rank and nothing may
 * start it but a plan. podman gives GPUs by their CDI name (NVIDIA container toolkit 1.14), cannot raise a limit
 * without root (podman-run(1): `--ulimit host` takes the user's own), allows 2048 processes and threads, of which a host
 * with many cores has soon none left, and writes the log to the journal unless it is told a file, of which `podman logs`
 * gives everything back.
 */
function containerRun(
  { argv, env }: RankCommand,
  facts: ReachedFacts,
  { recipe, engine }: Input,
): readonly string[] {
  if (recipe.run.in === 'process') throw new Error('not a recipe for containers');
  const podman = recipe.run.in === 'podman';
  const rootless = podman && valueIf(facts.host)?.uid !== 0;
  const image = imageOf(recipe, engine);
  if (image === undefined) throw new Error(`no image for ${engine}`);
  const gpus = valueIf(facts.gpus);
  const rdma = valueIf(facts.rdma) ?? [];
  const { path } = recipe;
  const mounted = recipe.run.volumes.some((volume) => {
    const inside = volume.split(':')[1] ?? '';
    return path === inside || path.startsWith(`${inside.replace(/\/$/, '')}/`);
  });
  const [entry, words] = entryFor(engine, image, argv);
  return [
    recipe.run.in,
    'run',
    ...(gpus?.length === 0 ? [] : podman ? ['--device', 'nvidia.com/gpu=all'] : ['--gpus', 'all']),
    '--network',
    'host',
    '--ipc',
    'host',
    ...(rootless ? ['--ulimit', 'host'] : ['--ulimit', 'memlock=-1', '--ulimit', 'stack=67108864']),
    ...(podman ? ['--pids-limit', '-1', '--log-driver', 'k8s-file'] : []),
    ...(rdma.length > 0 ? ['--device', '/dev/infiniband'] : []),
    ...(mounted ? [] : ['-v', `${path}:${path}:ro`]),
    ...recipe.run.volumes.flatMap((volume) => ['-v', volume]),
    ...Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]),
    ...entry,
    image,
    ...words,
  ];
}

/**
 * vLLM's own image has `vllm serve` as its entry point, others have a shell or nothing, so the program is named.
 * NVIDIA's images keep theirs: it enables CUDA forward compatibility and then runs its arguments (engines.md 7).
 */
function entryFor(
  engine: EngineName,
  image: string,
  argv: readonly string[],
): readonly [readonly string[], readonly string[]] {
  const [program, ...rest] = argv;
  return softwareOf(engine) === 'vllm' && program !== undefined && !image.startsWith('nvcr.io/')
    ? [['--entrypoint', program], rest]
    : [[], argv];
}
