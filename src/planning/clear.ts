import { script } from '../domain/command.ts';
import { digestOf } from '../domain/digest.ts';
import { type Fact, type Holder, known, type ReachedFacts, unknown, valueIf } from '../domain/facts.ts';
import type { Phase, Step } from '../domain/plan.ts';
import type { Recipe } from '../domain/recipe.ts';
import { gib } from '../domain/units.ts';
import type { Share } from './allocate.ts';
import { orphanSteps } from './orphan-step.ts';
import { AWAIT_GPU_MEMORY_SH, AWAIT_MEMORY_SH, DROP_CACHE_SH, EVICT_FILES_SH } from './step-scripts.ts';
import { stopStep } from './stop-step.ts';

const GIB = 2 ** 30;
const CACHE_WORTH_BYTES = 8 * GIB;
/** Memory comes back late on unified memory: 60 s to about 3 min (facts of the field, spark.md 3). */
const BACK_WITHIN_SECONDS = 180;

/** Why a holder has to go. */
export type Going = { readonly holder: Holder; readonly why: string };

/**
 * The clear phase: stop what is in the way on each node, wait until its memory is back, drop a page cache that
 * hides free memory. Undefined when nothing is to be done.
 */
export function clearPhase(input: {
  readonly shares: readonly Share[];
  readonly recipe: Recipe;
  /** Holders in the way of a port, by node, with the reason. */
  readonly ports: ReadonlyMap<string, readonly Going[]>;
  readonly sudo: Readonly<Record<string, boolean>>;
  /** Nodes whose own files were taken out of the page cache in this run already. */
  readonly evicted: ReadonlySet<string>;
  /** Nodes on which a rank is still to be started. */
  readonly launching: ReadonlySet<string>;
}): Phase | undefined {
  const stops = input.shares.flatMap((share) => [
    ...(share.facts !== undefined && input.launching.has(share.node) ? orphanSteps(share.facts) : []),
    ...stopsOn(share, input.ports.get(share.node) ?? [], input.sudo),
  ]);
  const waits = input.shares.flatMap((share) =>
    stops.some((step) => step.node === share.node) ? awaitStep(share, input.recipe) : [],
  );
  const drops = input.shares.flatMap((share) =>
    input.launching.has(share.node) ? dropsOn(share, input) : [],
  );
  const steps = uniqueIds([...asJobs(stops, input.shares), ...waits, ...drops]);
  return steps.length === 0 ? undefined : { kind: 'clear', steps, services: [] };
}

/**
 * Whether free memory is hidden by the page cache: the driver needs pages that are free now, although MemAvailable
 * counts the cache in (spark.md 3). Shared memory and dirty pages are in the cache and cannot be dropped: how much can
 * be is unknown where one of them is, unless all of it together would not be worth it.
 */
function cacheInTheWay({ facts, room, memory, chosen }: Share): Fact<boolean> {
  const seen = valueIf(facts?.memory);
  if (seen === undefined || room === undefined || !room.unified) return known(false);
  const { cachedBytes, sharedBytes, dirtyBytes } = seen;
  const back = chosen.reduce((sum, holder) => sum + holder.bytes, 0);
  if (seen.freeBytes + back >= memory.sumBytes) return known(false);
  if (cachedBytes === undefined) return unknown('meminfo lists no Cached');
  if (cachedBytes <= CACHE_WORTH_BYTES) return known(false);
  if (sharedBytes === undefined) return unknown('meminfo lists no Shmem');
  if (dirtyBytes === undefined) return unknown('meminfo lists no Dirty');
  return known(cachedBytes - sharedBytes - dirtyBytes > CACHE_WORTH_BYTES);
}

/** Why it is not known whether the page cache hides free memory there; undefined where it is known. */
export function cacheUnknownWhy(share: Share): string | undefined {
  const hides = cacheInTheWay(share);
  return hides.known ? undefined : hides.why;
}

/** How the page cache of a node can be made to give way: as root, by the model's own files, or not at all. */
export function cacheMeans(
  share: Share,
  {
    sudo,
    evicted,
  }: { readonly sudo: Readonly<Record<string, boolean>>; readonly evicted: ReadonlySet<string> },
): 'not in the way' | 'drop' | 'evict' | 'none' {
  if (valueIf(cacheInTheWay(share)) !== true) return 'not in the way';
  if (sudo[share.node] === true && valueIf(share.facts?.sudo) !== 'none') return 'drop';
  const model = valueIf(share.facts?.model);
  return model?.present === true && !evicted.has(share.node) ? 'evict' : 'none';
}

function dropsOn(
  share: Share,
  input: {
    readonly recipe: Recipe;
    readonly sudo: Readonly<Record<string, boolean>>;
    readonly evicted: ReadonlySet<string>;
  },
): readonly Step[] {
  const means = cacheMeans(share, input);
  if (means === 'drop') return [dropStep(share.node)];
  return means === 'evict' ? [evictStep(share.node, input.recipe.path)] : [];
}

function stopsOn(
  share: Share,
  ports: readonly Going[],
  sudo: Readonly<Record<string, boolean>>,
): readonly Step[] {
  const { facts } = share;
  if (facts === undefined) return [];
  return share.chosen.map((holder) => {
    const port = ports.find((going) => going.holder.identity === holder.identity);
    return stopStep({
      holder,
      facts,
      why: port?.why ?? whyMemory(holder, share),
      rootAtHand: sudo[share.node] === true,
    });
  });
}

function whyMemory(holder: Holder, { memory, node }: Share): string {
  return `It holds ${gib(holder.bytes)} on ${node}; the plan needs ${gib(memory.sumBytes)}, and ${gib(memory.canGetBytes)} can be had now.`;
}

function awaitStep(share: Share, recipe: Recipe): readonly Step[] {
  const { facts, room, memory, node } = share;
  if (facts === undefined || room === undefined || memory.verdict === 'unknown') return [];
  const aim = memory.verdict === 'fits' ? memory.sumBytes : memory.sumBytes - memory.errorBytes;
  const needBytes = room.unified ? aim + recipe.memory.reserve : aim;
  const command = room.unified
    ? script(AWAIT_MEMORY_SH, [String(Math.ceil(needBytes / 1024))], { timeoutSeconds: 20 })
    : script(AWAIT_GPU_MEMORY_SH, [String(Math.ceil(needBytes / 2 ** 20)), String(gpuCount(facts, recipe))], {
        timeoutSeconds: 20,
      });
  return [
    {
      id: stepId(node, 'await-memory', ''),
      phase: 'clear',
      kind: 'await-memory',
      node,
      title: `Wait until ${gib(needBytes)} are ${room.unified ? 'available' : 'free'}`,
      why: 'Memory comes back some time after its holder has ended; up to three minutes were seen.',
      risk: 'none',
      needsConsent: false,
      command,
      undo: { kind: 'nothing' },
      retry: { everySeconds: 2, forSeconds: BACK_WITHIN_SECONDS },
    },
  ];
}

function gpuCount(facts: ReachedFacts, recipe: Recipe): number {
  const ranks = Math.ceil((recipe.layout.tensor * recipe.layout.pipeline) / recipe.layout.nodes);
  return Math.max(1, Math.min(ranks, valueIf(facts.gpus)?.length ?? ranks));
}

function dropStep(node: string): Step {
  return {
    id: stepId(node, 'drop-cache', ''),
    phase: 'clear',
    kind: 'drop-cache',
    node,
    title: 'Drop the page cache',
    why: 'The GPU driver needs pages that are free now; the page cache holds them, although the kernel counts them as available.',
    risk: 'Files are read from disk once more; nothing is lost.',
    needsConsent: false,
    command: script(DROP_CACHE_SH, [], { sudo: true, timeoutSeconds: 120 }),
    undo: { kind: 'nothing' },
    optional: true,
  };
}

/** Without root: only the model's own files, which are most of what a copy leaves in the cache. */
function evictStep(node: string, path: string): Step {
  return {
    id: stepId(node, 'drop-cache', path),
    phase: 'clear',
    kind: 'drop-cache',
    node,
    title: 'Take the model’s own files out of the page cache',
    why: 'The GPU driver needs pages that are free now, and without root only these files’ pages can be given back.',
    risk: 'They are read from disk once more; nothing is lost.',
    needsConsent: false,
    command: script(EVICT_FILES_SH, [path], { timeoutSeconds: 120 }),
    undo: { kind: 'nothing' },
    optional: true,
  };
}

/** Id of a step that is about its node alone. */
function stepId(node: string, kind: Step['kind'], identity: string): string {
  return digestOf({ node, kind, identity }).slice(0, 4);
}

/** Two steps of one id: the later one gets more digits of its hash, and the first keeps its consent. */
function uniqueIds(steps: readonly Step[]): readonly Step[] {
  const taken = new Set<string>();
  return steps.map((step) => {
    const whole = digestOf({ node: step.node, kind: step.kind, identity: step.target?.identity ?? '' });
    let id = step.id;
    for (let length = id.length + 1; taken.has(id); length += 1) id = whole.slice(0, length);
    taken.add(id);
    return id === step.id ? step : { ...step, id };
  });
}

/**
 * Halves of somebody's job over several nodes, told by equal container name and image or by equal command: each names
 * the others, since stopping one ends the job.
 */
function asJobs(steps: readonly Step[], shares: readonly Share[]): readonly Step[] {
  const keys = new Map<string, string>();
  for (const { node, chosen } of shares)
    for (const holder of chosen) keys.set(`${node} ${holder.identity}`, jobKey(holder));
  const keyOf = (step: Step): string => keys.get(`${step.node} ${step.target?.identity}`) ?? '';
  return steps.map((step) => {
    const { target } = step;
    if (target === undefined) return step;
    const job = steps.filter((other) => other.node !== step.node && keyOf(other) === keyOf(step));
    return job.length === 0 ? step : { ...step, target: { ...target, job: job.map((other) => other.id) } };
  });
}

/** Ranks of one job differ in numbers and addresses alone. */
function jobKey({ owner, command }: Holder): string {
  const shape = command.replace(/\d+/g, '#');
  return owner.kind === 'container' ? `container ${owner.name} ${owner.image}` : `${owner.kind} ${shape}`;
}
