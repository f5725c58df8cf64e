import { type Command, type Ran, script } from '../domain/command.ts';
import { type Holder, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import { gib } from '../domain/units.ts';
import { AWAIT_GPU_MEMORY_SH, AWAIT_MEMORY_SH } from '../planning/step-scripts.ts';
import type { Recorder } from './recorder.ts';
import { endOf, type StepEnd, tellStep } from './tell-step.ts';
import type { World } from './world.ts';

/** Memory that a node should have again once our ranks are gone. */
export type MemoryTarget = {
  readonly node: string;
  readonly bytes: number;
  /** Number of GPUs whose free memory counts; 0 where the host's available memory counts. */
  readonly gpus: number;
};

/** Memory comes back up to three minutes after its holder has ended (spark.md §3). */
const WITHIN_SECONDS = 180;
const EVERY_SECONDS = 1;
/** What a look differs from the next one by itself, and what failed starts leak. */
const SLACK_BYTES = 3 * 2 ** 30;
/** What the system itself takes, and no holder is named for; 4 to 7 GiB were seen (spark.md §3). */
const SYSTEM_BYTES = 8 * 2 ** 30;
/** What a process takes beyond the memory that nvidia-smi says of it; 9 GiB were seen (spark.md §2). */
const HIDDEN_BYTES = 10 * 2 ** 30;

/**
 * What each node of these ranks should get back: what it had at the look before, and what they held then; less what
 * others have taken since, as the look after tells. Nodes whose memory is not known are left out.
 */
export function memoryTargets(
  ranks: readonly { readonly name: string; readonly node: string }[],
  before: readonly NodeFacts[],
  after: readonly NodeFacts[] = [],
): readonly MemoryTarget[] {
  const names = new Set(ranks.map(({ name }) => name));
  const concerned = before.filter(({ node }) => ranks.some((rank) => rank.node === node));
  return concerned.flatMap((seen): readonly MemoryTarget[] => {
    if (!seen.reached) return [];
    const gpus = valueIf(seen.gpus) ?? [];
    const unified = gpus.every((gpu) => gpu.unified);
    const free = unified
      ? valueIf(seen.memory)?.availableBytes
      : gpus.reduce<number | undefined>((sum, gpu) => add(sum, valueIf(gpu.freeBytes)), 0);
    if (free === undefined) return [];
    const later = after.find((one) => one.node === seen.node);
    const came = later?.reached ? newcomers(seen, later) : [];
    const held = (holders: readonly Holder[]): number =>
      holders.reduce((sum, one) => sum + (unified ? one.bytes : (valueIf(one.gpuBytes) ?? 0)), 0);
    const bytes = free + held(heldBy(names, seen)) - held(came) - SLACK_BYTES;
    return bytes <= 0 ? [] : [{ node: seen.node, bytes, gpus: unified ? 0 : gpus.length }];
  });
}

/**
 * What nodes should get back that a run cut off just before had cleared: memory that nobody holds and that is not
 * available, where something was stopped or had ended so lately that it may still be on its way. Nodes where a rank
 * of ours runs are left out, and cards of their own, whose driver gives back at once.
 */
export function settlingTargets(facts: readonly NodeFacts[], now: number): readonly MemoryTarget[] {
  const lately = (iso: string): boolean => now - Date.parse(iso) < WITHIN_SECONDS * 1000;
  return facts.flatMap((seen): readonly MemoryTarget[] => {
    if (!seen.reached || !(valueIf(seen.gpus) ?? []).every((gpu) => gpu.unified)) return [];
    const memory = valueIf(seen.memory);
    const ranks = valueIf(seen.ranks) ?? [];
    if (memory === undefined || !seen.holders.known || ranks.some(({ state }) => state !== 'ended'))
      return [];
    const stopped = (valueIf(seen.owed) ?? []).some(({ state, at }) => state === 'pending' && lately(at));
    if (!stopped && !ranks.some(({ startedAt }) => lately(startedAt))) return [];
    const held = seen.holders.value.reduce(
      (sum, { bytes, gpuBytes }) => sum + bytes + ((valueIf(gpuBytes) ?? 0) > 0 ? HIDDEN_BYTES : 0),
      0,
    );
    const missing = memory.totalBytes - memory.availableBytes - held - SYSTEM_BYTES;
    return missing <= 0 ? [] : [{ node: seen.node, bytes: memory.availableBytes + missing, gpus: 0 }];
  });
}

/** Waits until that memory is there again, three minutes at most; told in the journal where it takes any time. */
export async function awaitMemory(
  world: World,
  recorder: Recorder,
  targets: readonly MemoryTarget[],
): Promise<void> {
  await Promise.all(targets.map((target) => awaitNode(world, recorder, target)));
}

async function awaitNode(world: World, recorder: Recorder, target: MemoryTarget): Promise<void> {
  const { node } = target;
  const host = world.hosts.of(node);
  const ask = (): Promise<Ran> => host.run(commandOf(target), { signal: world.signal });
  let ran = await ask();
  if (ran.kind !== 'ran' || ran.code === 0) return;
  const until = world.clock.now() + WITHIN_SECONDS * 1000;
  await tellStep(
    world,
    recorder,
    {
      id: `memory-back-${node}`,
      node,
      title: `Wait until ${gib(target.bytes)} are ${target.gpus === 0 ? 'available' : 'free'} again`,
      phase: 'stop',
      kind: 'await-memory',
      undo: 'nothing',
    },
    async (): Promise<StepEnd> => {
      while (ran.kind === 'ran' && ran.code !== 0 && world.clock.now() < until) {
        await world.clock.wait(EVERY_SECONDS * 1000, world.signal);
        ran = await ask();
      }
      const end = endOf(ran);
      // Whoever holds it now is named by the next look.
      return end.result === 'failed' ? { ...end, result: 'skipped' } : end;
    },
  );
}

function commandOf({ bytes, gpus }: MemoryTarget): Command {
  return gpus === 0
    ? script(AWAIT_MEMORY_SH, [String(Math.floor(bytes / 1024))], { timeoutSeconds: 20 })
    : script(AWAIT_GPU_MEMORY_SH, [String(Math.floor(bytes / 2 ** 20)), String(gpus)], {
        timeoutSeconds: 20,
      });
}

function heldBy(names: ReadonlySet<string>, facts: ReachedFacts): readonly Holder[] {
  return (valueIf(facts.holders) ?? []).filter(({ owner }) => owner.kind === 'rank' && names.has(owner.name));
}

function newcomers(before: ReachedFacts, after: ReachedFacts): readonly Holder[] {
  const known = new Set((valueIf(before.holders) ?? []).map(({ identity }) => identity));
  return (valueIf(after.holders) ?? []).filter(
    ({ owner, identity }) => owner.kind !== 'rank' && !known.has(identity),
  );
}

function add(sum: number | undefined, bytes: number | undefined): number | undefined {
  return sum === undefined || bytes === undefined ? undefined : sum + bytes;
}
