import { parseObject, textAt } from './json.ts';
import type { Recipe } from './recipe.ts';

/** Memory that a rank's guard keeps available, bytes; less on a small host unless it was `set` in the recipe. */
export type GuardReserve = { readonly reserveBytes: number; readonly set: boolean };

/**
 * The recipe's own figure; half of `memory.reserve` where it names none, which is 3 GiB: what a clean Spark is planned
 * with (6 GiB) lets engines come close that work, and under 2 to 3 GiB hosts were seen to wedge (engines.md 7). Undefined
 * where the guard is switched off.
 */
export function guardReserve({ memory }: Recipe): GuardReserve | undefined {
  if (memory.guard === 'off') return undefined;
  return memory.guard === undefined
    ? { reserveBytes: Math.floor(memory.reserve / 2), set: false }
    : { reserveBytes: memory.guard, set: true };
}

/** What the guard of a rank has put down in the rank's folder (remote/guard-script.ts). Sizes in bytes. */
export type GuardRecord = {
  /**
   * `guards`: it watches, and can stop its rank; `unguarded`: it only watches, nothing that would stop the rank works;
   * `blind`: the memory of the node cannot be read; `stopping`, `stopped`: it has ended its rank; `failed`: it could not.
   */
  readonly state: 'guards' | 'unguarded' | 'blind' | 'stopping' | 'stopped' | 'failed';
  /** The means that works (or worked), tried at the start without doing anything. */
  readonly by: 'docker' | 'podman' | 'signal' | 'sudo' | 'none';
  /** Why it stopped the rank: under the reserve, falling so fast that it is gone in seconds, or the driver's own words. */
  readonly why: 'reserve' | 'falling' | 'driver' | undefined;
  /** Whose memory is the scarcest: the host's, or a limited cgroup's of the rank. */
  readonly memory: 'host' | 'cgroup';
  /** What must stay available, after the bounds for small hosts and limits. */
  readonly reserveBytes: number;
  /** Whether this user may read the kernel's log: NV_ERR_NO_MEMORY is seen there alone. */
  readonly kernelLog: 'read' | 'unknown';
  readonly driverErrors: number;
  /** Processes of the rank that the kernel killed for memory, by the counters of its cgroup or container. */
  readonly oomKills: number;
  /** Least memory available since the rank started, and when that was, ISO. */
  readonly lowestBytes: number;
  readonly lowestAt: string | undefined;
  /** Available now, as the follower sees it; the guard itself does not say. */
  readonly availableBytes?: number;
  /** Up to 60 samples before it stopped the rank: seconds before the stop (0 or less), bytes available. */
  readonly curve: readonly { readonly second: number; readonly bytes: number }[];
};

const STATES = ['guards', 'unguarded', 'blind', 'stopping', 'stopped', 'failed'] as const;
const MEANS = ['docker', 'podman', 'signal', 'sudo', 'none'] as const;
const WHYS = ['reserve', 'falling', 'driver'] as const;
const MOST_SAMPLES = 60;

/** guard.json as it stands on the node; undefined where it is no such record. Values out of range are left out. */
export function parseGuard(text: string): GuardRecord | undefined {
  const json = parseObject(text);
  if (json === undefined) return undefined;
  const state = STATES.find((one) => one === textAt(json, 'state'));
  const reserveBytes = kib(json['reserveKib']);
  const lowestBytes = kib(json['lowestKib']);
  if (state === undefined || reserveBytes === undefined || lowestBytes === undefined) return undefined;
  const at = Number(json['lowestAt']);
  const curve: readonly unknown[] = Array.isArray(json['curve']) ? json['curve'] : [];
  return {
    state,
    by: MEANS.find((one) => one === textAt(json, 'by')) ?? 'none',
    why: WHYS.find((one) => one === textAt(json, 'why')),
    memory: textAt(json, 'memory') === 'cgroup' ? 'cgroup' : 'host',
    reserveBytes,
    kernelLog: textAt(json, 'kernelLog') === 'read' ? 'read' : 'unknown',
    driverErrors: count(json['driverErrors']),
    oomKills: count(json['oomKills']),
    lowestBytes,
    lowestAt: Number.isFinite(at) && at > 0 && at < 8.64e12 ? new Date(at * 1000).toISOString() : undefined,
    curve: curve.slice(-MOST_SAMPLES).flatMap((sample) => {
      const [second, size] = Array.isArray(sample) ? sample.map((one: unknown) => Number(one)) : [];
      const bytes = kib(size);
      return second === undefined || !Number.isFinite(second) || bytes === undefined
        ? []
        : [{ second, bytes }];
    }),
  };
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function kib(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER / 1024
    ? Math.round(value) * 1024
    : undefined;
}

/** Whether the guard ended its rank. */
export function stoppedByGuard(record: GuardRecord | undefined): record is GuardRecord {
  return record?.state === 'stopped' || record?.state === 'stopping';
}
