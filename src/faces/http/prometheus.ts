import { type Fact, type Gpu, type NodeFacts, valueIf } from '../../domain/facts.ts';
import type { World } from '../../operations/world.ts';
import type { Desk } from './desk.ts';

type Labels = Readonly<Record<string, string>>;
type Sample = { readonly labels: Labels; readonly value: number | undefined };

/** A look that is older is made anew for a scrape; Prometheus asks every 15 s or so. */
const STALE_MILLISECONDS = 60_000;
/** A label for each holder that ever was would fill a Prometheus. */
const MOST_HOLDERS = 20;

/** Prometheus' text form 0.0.4. What is unknown is absent, never zero; nodes by the last look. */
export async function metricsText(desk: Desk, world: World): Promise<string> {
  // Without a cluster file there is nothing to look at, and firstlight's own numbers all the same.
  const looked = await desk.looks.fresh(STALE_MILLISECONDS).catch(() => desk.looks.last());
  const facts = looked?.facts ?? [];
  const newest = world.journal.latest();
  const state = newest === undefined ? undefined : await desk.states.of(newest);
  const engine = desk.engine.all().at(-1);
  const all = desk.meters();
  return [
    family('firstlight_info', 'gauge', 'Version of firstlight.', [
      { labels: { version: world.version }, value: 1 },
    ]),
    family('firstlight_runs_total', 'counter', 'Runs in the journal.', [
      { labels: {}, value: newest === undefined ? 0 : Number(newest) },
    ]),
    family('firstlight_run_open', 'gauge', 'Whether the newest run goes on.', [
      { labels: runLabels(state), value: state === undefined ? undefined : state.ended ? 0 : 1 },
    ]),
    family('firstlight_run_waits_for_consent', 'gauge', 'Whether the newest run waits for a person.', [
      { labels: runLabels(state), value: state === undefined ? undefined : state.asked ? 1 : 0 },
    ]),
    family('firstlight_event_streams', 'gauge', 'Event streams that are open.', [
      { labels: {}, value: all.streams },
    ]),
    family(
      'firstlight_requests_total',
      'counter',
      'Requests that were answered.',
      [...all.requests.entries()].map(([status, value]) => ({ labels: { status }, value })),
    ),
    family('firstlight_look_age_seconds', 'gauge', 'Age of the look that the node numbers are from.', [
      { labels: {}, value: looked === undefined ? undefined : (world.clock.now() - looked.at) / 1000 },
    ]),
    ...nodeFamilies(facts),
    family('firstlight_engine_requests_running', 'gauge', 'Requests running, by the engine.', [
      { labels: {}, value: engine?.running },
    ]),
    family('firstlight_engine_requests_waiting', 'gauge', 'Requests waiting, by the engine.', [
      { labels: {}, value: engine?.waiting },
    ]),
    family('firstlight_engine_kv_used_ratio', 'gauge', 'KV cache in use, by the engine.', [
      { labels: {}, value: engine?.kvUsed },
    ]),
  ].join('');
}

function nodeFamilies(facts: readonly NodeFacts[]): readonly string[] {
  const each = (
    name: string,
    help: string,
    value: (seen: Extract<NodeFacts, { reached: true }>) => number | undefined,
  ): string =>
    family(
      name,
      'gauge',
      help,
      facts.map((seen) => ({ labels: { node: seen.node }, value: seen.reached ? value(seen) : undefined })),
    );
  const gpus = (name: string, help: string, value: (gpu: Gpu) => number | undefined): string =>
    family(
      name,
      'gauge',
      help,
      facts.flatMap((seen) =>
        seen.reached
          ? (valueIf(seen.gpus) ?? []).map((gpu) => ({
              labels: { node: seen.node, gpu: String(gpu.index), name: gpu.name },
              value: value(gpu),
            }))
          : [],
      ),
    );
  const count = (fact: Fact<readonly unknown[]>): number | undefined => valueIf(fact)?.length;
  return [
    family(
      'firstlight_node_reached',
      'gauge',
      'Whether the node was reached.',
      facts.map((seen) => ({ labels: { node: seen.node }, value: seen.reached ? 1 : 0 })),
    ),
    each('firstlight_node_memory_total_bytes', 'MemTotal.', (seen) => valueIf(seen.memory)?.totalBytes),
    each(
      'firstlight_node_memory_available_bytes',
      'MemAvailable.',
      (seen) => valueIf(seen.memory)?.availableBytes,
    ),
    each('firstlight_node_memory_free_bytes', 'MemFree.', (seen) => valueIf(seen.memory)?.freeBytes),
    each('firstlight_node_page_cache_bytes', 'Cached.', (seen) => valueIf(seen.memory)?.cachedBytes),
    each('firstlight_node_swap_free_bytes', 'SwapFree.', (seen) => valueIf(seen.memory)?.swapFreeBytes),
    each('firstlight_node_gpus', 'GPUs that were seen.', (seen) => count(seen.gpus)),
    each('firstlight_node_holders', 'Holders of memory that were seen.', (seen) => count(seen.holders)),
    each(
      'firstlight_node_owed',
      'Things that were stopped and are not given back.',
      (seen) => valueIf(seen.owed)?.filter((record) => record.state === 'pending').length,
    ),
    each('firstlight_node_clock_offset_seconds', "The node's clock less ours.", (seen) =>
      valueIf(seen.clockOffsetSeconds),
    ),
    gpus('firstlight_gpu_memory_free_bytes', 'Free memory of a GPU that has its own.', (gpu) =>
      gpu.unified ? undefined : valueIf(gpu.freeBytes),
    ),
    gpus('firstlight_gpu_use_ratio', 'How busy the GPU is.', ({ heat }) =>
      heat?.usePercent === undefined ? undefined : heat.usePercent / 100,
    ),
    gpus('firstlight_gpu_temperature_celsius', 'Temperature.', ({ heat }) => heat?.celsius),
    gpus('firstlight_gpu_power_watts', 'Power draw.', ({ heat }) => heat?.watts),
    gpus('firstlight_gpu_clock_hertz', 'Clock.', ({ heat }) =>
      heat?.megahertz === undefined ? undefined : heat.megahertz * 1e6,
    ),
    family(
      'firstlight_holder_bytes',
      'gauge',
      'Memory of the largest holders.',
      facts.flatMap((seen) =>
        seen.reached
          ? (valueIf(seen.holders) ?? [])
              .toSorted((a, b) => b.bytes - a.bytes)
              .slice(0, MOST_HOLDERS)
              .map(({ name, owner, user, bytes, pid }) => ({
                labels: { node: seen.node, name, kind: owner.kind, user, pid: String(pid) },
                value: bytes,
              }))
          : [],
      ),
    ),
    family(
      'firstlight_rank_up',
      'gauge',
      'Whether a rank that firstlight started runs.',
      facts.flatMap((seen) =>
        seen.reached
          ? (valueIf(seen.ranks) ?? []).map((rank) => ({
              labels: { node: seen.node, recipe: rank.recipe, rank: String(rank.rank), engine: rank.engine },
              value: rank.state === 'ended' ? 0 : 1,
            }))
          : [],
      ),
    ),
  ];
}

function runLabels(
  state: { readonly run: string; readonly operation: string | undefined } | undefined,
): Labels {
  return state === undefined ? {} : { run: state.run, operation: state.operation ?? 'unknown' };
}

function family(name: string, type: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.flatMap(({ labels, value }) =>
    value === undefined || Number.isNaN(value) ? [] : [`${name}${labelText(labels)} ${value}\n`],
  );
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
