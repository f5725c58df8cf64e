import type { Cluster, Node } from '../domain/cluster.ts';
import { digestOf } from '../domain/digest.ts';
import type { NodeFacts } from '../domain/facts.ts';
import type { Blocker, Phase, Plan } from '../domain/plan.ts';
import type { EngineName, Recipe, RecipeEdit } from '../domain/recipe.ts';
import { allocate } from './allocate.ts';
import { clearPhase } from './clear.ts';
import { hostBlockers, portsInTheWay } from './host-blockers.ts';
import { servicesOf } from './launch.ts';
import { layoutBlockers } from './layout-blockers.ts';
import type { Remembered } from './learned.ts';
import { memoryBlockers } from './memory-blockers.ts';
import { memoryFraction } from './memory-fraction.ts';
import { aliveRanks, type Ours, ourRanks } from './our-ranks.ts';
import { supplyBlockers } from './supply.ts';
import { warningsOf } from './warnings.ts';

export type PlanInput = {
  readonly cluster: Cluster;
  /** By rank, head first; `facts` may come in any order. */
  readonly nodes: readonly Node[];
  /** With the edits of remedies folded in. */
  readonly recipe: Recipe;
  readonly recipeDigest: string;
  readonly edits: readonly RecipeEdit[];
  readonly engine: EngineName;
  readonly facts: readonly NodeFacts[];
  /** Nodes on which root can be had in this run. */
  readonly sudo: Readonly<Record<string, boolean>>;
  /** Nodes whose model was taken out of the page cache in this run already. */
  readonly evicted?: ReadonlySet<string>;
  /** Ranks of an older form of this recipe may be stopped. */
  readonly replace: boolean;
  /** What earlier runs measured of memory: it goes before what is predicted. */
  readonly remembered?: readonly Remembered[];
};

/**
 * What is to be done, from what was seen: a pure function. What ours is and runs already is not started again; what
 * is foreign and in the way is proposed to be stopped, with consent; what no step can mend is a blocker.
 */
export function plan(input: PlanInput): Plan {
  const { nodes, recipe, recipeDigest, edits, engine } = input;
  const facts = byRank(nodes, input.facts);
  const ours = ourRanks(facts, { recipe: recipe.recipe, recipeDigest, replace: input.replace });
  const missing = nodes.map((_, rank) => rank).filter((rank) => !ours.kept.has(rank));
  const done = missing.length === 0;
  const launching = new Set(missing.flatMap((rank) => nodes[rank]?.name ?? []));
  const common = { nodes, facts, recipe, engine };
  const evicted = input.evicted ?? new Set<string>();
  const ports = portsInTheWay({ ...common, ours: busyWithOurs(facts, ours, recipe) });
  const allocation = allocate({
    ...common,
    remembered: input.remembered,
    settled: new Set([...ours.kept.values()].map(({ node }) => node)),
    leaving: new Set([...ours.strays, ...ours.toReplace].map(({ record }) => record.name)),
    alsoGoing: (node) => (ports.going.get(node) ?? []).map(({ holder }) => holder),
  });
  const blockers = done
    ? []
    : [
        ...hostBlockers(nodes, facts),
        ...replaceBlockers(ours, input.replace),
        ...layoutBlockers(common),
        ...supplyBlockers(common),
        ...ports.blockers,
        ...memoryBlockers(allocation, common),
      ];
  const services = (fraction: number | undefined) =>
    servicesOf({ ...common, recipeDigest, edits, fraction, running: new Set(ours.kept.keys()) });
  const clear = done
    ? undefined
    : clearPhase({
        shares: allocation.shares,
        recipe,
        ports: ports.going,
        sudo: input.sudo,
        evicted,
        launching,
      });
  const launch: Phase = {
    kind: 'launch',
    steps: [],
    services: services(memoryFraction(recipe, engine, allocation.shares)),
  };
  const phases = [...(clear === undefined ? [] : [clear]), ...(launch.services.length > 0 ? [launch] : [])];
  const effectiveDigest = digestOf(recipe);
  return {
    digest: planDigest(
      phases,
      services(typeof recipe.memory.fraction === 'number' ? recipe.memory.fraction : undefined),
      blockers,
      engine,
    ),
    engine,
    recipe,
    recipeDigest,
    effectiveDigest,
    edits,
    ranks: nodes.map((node) => node.name),
    phases,
    memory: allocation.shares.map((share) => share.memory),
    blockers,
    warnings: warningsOf({ ...common, allocation, phases, sudo: input.sudo, evicted }),
    state: done ? 'empty' : blockers.length > 0 ? 'blocked' : 'work',
  };
}

/** Over what would be done, never over figures: a fraction that the look computed is left out. */
function planDigest(
  phases: readonly Phase[],
  services: Phase['services'],
  blockers: readonly Blocker[],
  engine: EngineName,
): string {
  return digestOf({
    engine,
    steps: phases.flatMap((phase) => phase.steps.map(({ id, kind, node }) => ({ id, kind, node }))),
    services: services.map(({ name, node, argv, env, running }) => ({ name, node, argv, env, running })),
    blockers: blockers.map(({ cause, node }) => ({ cause, node: node ?? null })),
  });
}

function byRank(nodes: readonly Node[], facts: readonly NodeFacts[]): readonly NodeFacts[] {
  return nodes.flatMap((node) => facts.find((one) => one.node === node.name) ?? []);
}

/** Nodes where a rank of this recipe is alive: its ports are its own. */
function busyWithOurs(facts: readonly NodeFacts[], ours: Ours, recipe: Recipe): ReadonlySet<string> {
  const alive = aliveRanks(facts).filter(({ record }) => record.recipe === recipe.recipe);
  return new Set([...alive, ...ours.strays].map(({ node }) => node));
}

function replaceBlockers({ toReplace }: Ours, replace: boolean): readonly Blocker[] {
  const [first] = toReplace;
  if (first === undefined || replace) return [];
  return [
    {
      cause: 'needs-replace',
      node: first.node,
      title: `${first.record.recipe} runs on ${first.node} from an older form of this recipe.`,
      advice: [`firstlight up --replace stops it first; firstlight down stops it for good.`],
      userError: true,
    },
  ];
}
