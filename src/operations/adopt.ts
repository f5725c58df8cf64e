import { type NodeFacts, type RankRecord, valueIf } from '../domain/facts.ts';
import type { EngineName } from '../domain/recipe.ts';
import { plural } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { adoptRank } from '../remote/adopt.ts';
import { catchUp } from './adopted-logs.ts';
import { type Adoption, adoptions } from './adoptions.ts';
import { askHealth } from './health.ts';
import { inRun, type RunEnd } from './in-run.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { owedOf } from './owed.ts';
import { proposeAdoption } from './propose-adoption.ts';
import type { Recorder } from './recorder.ts';
import { tellLook } from './tell-look.ts';
import { endOf, tellStep } from './tell-step.ts';
import type { World } from './world.ts';

/** Where each engine's API listens unless it is told otherwise. */
const PORTS: Readonly<Record<EngineName, number>> = { sglang: 30000, vllm: 8000, 'vllm-ray': 8000 };

/** `firstlight adopt`: takes a pair that somebody started by hand into status, logs and down. It touches nothing of it. */
export const adopt: Operation<typeof inputs.adopt> = {
  name: 'adopt',
  summary: 'take a pair that was started by hand into status, logs and down; without flags, find it',
  effect: 'changes',
  input: inputs.adopt,
  async run(input, world) {
    const nodes = world.cluster.nodes;
    if (input.rank.length === 0) {
      const found = proposeAdoption(await look(world, nodes, undefined));
      return { report: { kind: 'adopt', ...found }, exit: found.command === undefined ? 1 : 0 };
    }
    const wanted = adoptions(input.rank, world.cluster);
    if (input.engine === undefined)
      throw new UserError('bad-input', 'which engine is it?', 'say --engine sglang or --engine vllm');
    const { engine, recipe, port = PORTS[engine] } = input;
    const places = nodes.filter(({ name }) => wanted.some(({ node }) => node === name));
    return inRun(
      world,
      { operation: 'adopt', nodes: places, recipe, recipeDigest: undefined },
      async (recorder, inside) => {
        const facts = await tellLook(inside, recorder, { attempt: 1, nodes: places, recipe: undefined });
        const job = { recipe, engine, port };
        for (const one of wanted) await take(inside, recorder, { ...job, facts, one });
        return settle(inside, recorder, wanted, job);
      },
      async (now) => owedOf(await look(now, places, undefined)),
    );
  },
};

type Job = { readonly recipe: string; readonly engine: EngineName; readonly port: number };

async function take(
  world: World,
  recorder: Recorder,
  {
    recipe,
    engine,
    port,
    facts,
    one,
  }: Job & { readonly facts: readonly NodeFacts[]; readonly one: Adoption },
): Promise<void> {
  const seen = facts.find(({ node }) => node === one.node);
  if (!seen?.reached)
    throw new UserError(
      'bad-input',
      seen?.failure.sentence ?? `${one.node} was not seen`,
      seen?.failure.remedy ?? '',
    );
  const kind = /^\d+$/.test(one.target) ? 'process' : runtimeOf(seen, one.target);
  const name = `${recipe}-r${one.rank}`;
  const record: Omit<RankRecord, 'state' | 'exitCode' | 'folder' | 'logBytes'> = {
    name,
    recipe,
    engine,
    rank: one.rank,
    run: recorder.run,
    attempt: 1,
    in: kind,
    // No recipe file has this digest: up does not take the pair for its own.
    recipeDigest: 'adopted',
    effectiveDigest: 'adopted',
    edits: [],
    startedAt: new Date(world.clock.now()).toISOString(),
    adopted: true,
    ...(one.rank === 0 ? { health: { address: '127.0.0.1', port }, servedName: recipe } : {}),
  };
  const step = {
    id: name,
    node: one.node,
    title: `adopt rank ${one.rank}, ${one.target}`,
    kind: 'adopt-rank',
  };
  const end = await tellStep(world, recorder, { ...step, phase: 'adopt', undo: 'nothing' }, async () =>
    endOf(
      await adoptRank(
        world.hosts.of(one.node),
        { name, kind, target: one.target, log: one.log, record },
        { signal: world.signal },
      ),
    ),
  );
  if (end.result !== 'done')
    throw new UserError('bad-input', `${one.node}: ${end.text}`, `see what runs there: firstlight adopt`);
  recorder.emit({
    type: 'rank-started',
    attempt: 1,
    node: one.node,
    rank: one.rank,
    role: one.rank === 0 ? 'head' : 'worker',
    engine,
    name,
    log: world.journal.logFile(recorder.run, 1, one.rank),
    followed: true,
  });
}

function runtimeOf(facts: Extract<NodeFacts, { reached: true }>, target: string): 'docker' | 'podman' {
  const containers = valueIf(facts.containers) ?? [];
  return containers.find(({ name, id }) => name === target || id.startsWith(target))?.runtime ?? 'docker';
}

async function settle(
  world: World,
  recorder: Recorder,
  wanted: readonly Adoption[],
  { recipe, port }: Job,
): Promise<RunEnd> {
  await catchUp(world, recorder.run);
  const head = wanted.find(({ rank }) => rank === 0);
  const health =
    head === undefined
      ? 'no head among them'
      : (await askHealth(world, { node: head.node, address: '127.0.0.1', port })).text;
  return {
    outcome: 'adopted',
    why: `${plural(wanted.length, 'rank')} adopted as ${recipe} (${health}); firstlight status and logs show it, firstlight down stops it`,
    exit: 0,
  };
}
