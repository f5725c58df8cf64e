import { type NodeFacts, type RankRecord, valueIf } from '../domain/facts.ts';
import { stoppedByGuard } from '../domain/guard.ts';
import { LOCK_DEAD_SECONDS } from '../domain/node-folder.ts';
import type { RankStatus, StatusReport } from '../domain/report.ts';
import { engines } from '../knowledge/engines/index.ts';
import { darkLinks } from '../planning/fabric-blockers.ts';
import { allRanks } from '../planning/our-ranks.ts';
import { askHealth, askToken } from './health.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { owedOf } from './owed.ts';
import { servicesOnNodes } from './services-on-nodes.ts';
import { standing } from './standing.ts';
import type { World } from './world.ts';

/** `firstlight status`: what serves, since when, which ranks, and whether they answer now. */
export const status: Operation<typeof inputs.status> = {
  name: 'status',
  summary: 'say what serves now, and whether it answers',
  effect: 'reads',
  input: inputs.status,
  async run(_input, world) {
    const facts = await look(world, world.cluster.nodes, undefined);
    const services = await Promise.all(servicesOnNodes(facts).map((job) => describe(world, job, facts)));
    const report: StatusReport = {
      kind: 'status',
      cluster: world.cluster.name,
      services,
      unreached: facts.flatMap((node) => {
        if (!node.reached) return [{ node: node.node, why: node.failure.sentence }];
        return node.ranks.known
          ? []
          : [{ node: node.node, why: `Which ranks run there is not known: ${node.ranks.why}.` }];
      }),
      owed: owedOf(facts),
      stopped: stoppedOf(facts),
      busy: busyOf(facts).map((work) => ({ ...work, ...standing(world, work) })),
    };
    return { report, exit: services.some((service) => service.serving) ? 0 : 1 };
  },
};

/** Of a job that has ended whole nothing else would be shown. */
function stoppedOf(facts: readonly NodeFacts[]): NonNullable<StatusReport['stopped']> {
  return allRanks(facts).flatMap(({ node, record: { recipe, rank, run, state, guard } }) =>
    state === 'ended' && guard !== undefined && stoppedByGuard(guard)
      ? [{ node, recipe, rank, run, guard }]
      : [],
  );
}

/** A lock that is not refreshed any more was left behind by a controller that is gone. */
function busyOf(facts: readonly NodeFacts[]): NonNullable<StatusReport['busy']> {
  const held = facts.flatMap((seen) => {
    const lock = seen.reached ? valueIf(seen.lock) : undefined;
    return lock && lock.ageSeconds <= LOCK_DEAD_SECONDS ? [{ node: seen.node, ...lock }] : [];
  });
  const runs = [...new Set(held.map(({ owner, run }) => `${owner} ${run}`))];
  return runs.flatMap((key) => {
    const locks = held.filter(({ owner, run }) => `${owner} ${run}` === key);
    const [first] = locks;
    if (first === undefined) return [];
    const { owner, run, since } = first;
    return [{ nodes: locks.map(({ node }) => node), owner, run, since }];
  });
}

async function describe(
  world: World,
  job: ReturnType<typeof servicesOnNodes>[number],
  facts: readonly NodeFacts[],
): Promise<StatusReport['services'][number]> {
  const head = job.ranks.find((rank) => rank.record.rank === 0);
  const ranks = await Promise.all(job.ranks.map((rank) => rankStatus(world, rank)));
  // A rank that nobody sees is not known to be alive, whatever the head's health says.
  const seen = ranks.length >= Math.max(1, ...job.ranks.map(({ record }) => record.ranks ?? 1));
  const alive = seen && ranks.every((rank) => rank.state === 'running' || rank.state === 'starting');
  const answers = ranks.find((rank) => rank.rank === 0)?.health === 'answers';
  const serving = alive && answers;
  const nodes = job.ranks.flatMap(({ node }) => world.cluster.nodes.filter(({ name }) => name === node));
  // Ranks that hear nothing of each other say so only when the engine's own patience ends, minutes later.
  const dark = serving || nodes.length < 2 ? [] : darkLinks(nodes, facts);
  return {
    recipe: job.recipe,
    engine: job.engine,
    run: head?.record.run ?? job.ranks[0]?.record.run ?? '',
    serving,
    ...(dark.length === 0 ? {} : { why: dark.map(({ title, advice }) => ({ title, advice })) }),
    since: head?.record.servingSince,
    head: head?.node ?? 'unknown',
    port: head?.record.health?.port,
    ranks,
    edits: job.edits,
  };
}

async function rankStatus(
  world: World,
  rank: { readonly node: string; readonly record: RankRecord },
): Promise<RankStatus> {
  const { record } = rank;
  const { guard } = record;
  const status = await stateOf(world, rank);
  return {
    ...status,
    ...(record.adopted ? { text: `adopted, ${status.text}` } : {}),
    ...(guard === undefined ? {} : { guard }),
  };
}

async function stateOf(
  world: World,
  rank: { readonly node: string; readonly record: RankRecord },
): Promise<RankStatus> {
  const { record, node } = rank;
  const base = {
    rank: record.rank,
    node,
    role: record.rank === 0 ? ('head' as const) : ('worker' as const),
    state: record.state,
  };
  if (record.state === 'ended')
    return {
      ...base,
      health: 'none',
      text: record.exitCode.known ? `ended with ${record.exitCode.value}` : 'ended',
    };
  if (record.health === undefined) {
    return {
      ...base,
      health: 'none',
      text: engines[record.engine].workerHealth
        ? 'opens no port'
        : 'this engine opens no port on workers; its process runs',
    };
  }
  const server = { node, ...record.health };
  const alive = await askHealth(world, server);
  const { ok, text } = alive.ok && record.rank === 0 ? await askToken(world, server, record) : alive;
  return { ...base, health: ok ? 'answers' : 'does-not-answer', text };
}
