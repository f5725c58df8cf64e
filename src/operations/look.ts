import type { Node } from '../domain/cluster.ts';
import { known, type NodeFacts } from '../domain/facts.ts';
import type { LookRequest } from '../domain/probe.ts';
import { ENGINES, imageOf, type Recipe } from '../domain/recipe.ts';
import { programsOf } from '../knowledge/engines/rank-shape.ts';
import { isOutsideGroup } from '../knowledge/probes/containers.ts';
import { assembleFacts, probeHeader, probesFor } from '../knowledge/probes/index.ts';
import { runProbes } from '../remote/run-probes.ts';
import type { World } from './world.ts';

/** The part of the world that a look needs. */
export type Eyes = Pick<World, 'hosts' | 'clock' | 'signal'>;

/** Looks at all nodes at once, each in one round trip. A host that is not reached is a fact, not an error. */
export async function look(
  world: Eyes,
  nodes: readonly Node[],
  recipe: Recipe | undefined,
  more: Pick<LookRequest, 'modelHeaders' | 'sinceSeconds'> = {},
): Promise<readonly NodeFacts[]> {
  return Promise.all(
    nodes.map((node) => lookAt(world, node, { ...requestFor(nodes, node, recipe), ...more })),
  );
}

/** Looks at memory and who holds it alone; all else is unknown, but for how root is to be had if `before` knows it. */
export async function lookAtMemory(
  world: Eyes,
  nodes: readonly Node[],
  before: readonly NodeFacts[] = [],
): Promise<readonly NodeFacts[]> {
  const request = { memoryOnly: true, modelPath: undefined, images: [], programs: [], peers: [] };
  return Promise.all(
    nodes.map((node) => {
      const seen = before.find((facts) => facts.node === node.name);
      return lookAt(
        world,
        node,
        seen?.reached && seen.sudo.known ? { ...request, sudo: seen.sudo } : request,
      );
    }),
  );
}

async function lookAt(world: Eyes, node: Node, request: LookRequest): Promise<NodeFacts> {
  const host = world.hosts.of(node.name);
  const at = new Date(world.clock.now()).toISOString();
  const failure = await host.connect({ signal: world.signal });
  if (failure) return { node: node.name, at, reached: false, failure };
  const ran = await runProbes(host, probesFor(request), probeHeader(request), { signal: world.signal });
  if (ran.kind === 'lost') return { node: node.name, at, reached: false, failure: ran.failure };
  const middle = (ran.sentAt + ran.receivedAt) / 2000;
  const facts = assembleFacts({
    node: node.name,
    at,
    milliseconds: ran.milliseconds,
    outputs: ran.outputs,
    request,
    clockOffsetSeconds:
      ran.nodeEpochSeconds === undefined
        ? { known: false, why: 'the node gave no time' }
        : known(Math.round((ran.nodeEpochSeconds - middle) * 1000) / 1000),
  });
  // Whoever is put into the group now is in it from the next login on.
  if (isOutsideGroup(facts.containers) || isOutsideGroup(facts.engines)) await host.leave(world);
  return facts;
}

function requestFor(nodes: readonly Node[], node: Node, recipe: Recipe | undefined): LookRequest {
  const run = recipe?.run;
  return {
    modelPath: recipe?.path,
    ...(run?.in === 'podman' ? { runtime: run.in } : {}),
    images:
      recipe === undefined || run === undefined || run.in === 'process'
        ? []
        : ENGINES.filter(
            (engine) => run.image[engine] !== undefined || recipe.engines.includes(engine),
          ).flatMap((engine) => {
            const image = imageOf(recipe, engine);
            return image === undefined ? [] : [{ engine, image }];
          }),
    programs:
      recipe === undefined
        ? []
        : recipe.engines.flatMap((engine) =>
            programsOf(recipe, engine).map((program) => ({ engine, program })),
          ),
    peers: nodes.flatMap((other) =>
      other.name !== node.name && other.fabric ? [{ node: other.name, address: other.fabric }] : [],
    ),
  };
}
