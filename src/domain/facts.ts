import type { Unreachable } from './command.ts';
import type { GuardRecord } from './guard.ts';
import type { EngineName, RecipeEdit } from './recipe.ts';

/** What was seen, or why it could not be seen. Unknown is not zero, and not fine. */
export type Fact<T> =
  | { readonly known: true; readonly value: T }
  | { readonly known: false; readonly why: string };

export function known<T>(value: T): Fact<T> {
  return { known: true, value };
}
export function unknown(why: string): { readonly known: false; readonly why: string } {
  return { known: false, why };
}
/** The value, or undefined where it is unknown: only where an unknown value is handled on the same line. */
export function valueIf<T>(fact: Fact<T> | undefined): T | undefined {
  return fact?.known ? fact.value : undefined;
}

export type HostFacts = {
  readonly hostname: string;
  readonly machineId: string;
  readonly bootId: string;
  readonly os: string;
  readonly kernel: string;
  /** `uname -m`: aarch64, x86_64 … */
  readonly arch: string;
  readonly user: string;
  readonly uid: number;
  readonly home: string;
  /** What the host's own name resolves to on the host itself. */
  readonly ownAddresses: Fact<readonly string[]>;
  readonly pageBytes: number;
  /** logind ends what a login has started when the login ends (`KillUserProcesses=yes`). */
  readonly killsAtLogout?: true;
};

/** From /proc/meminfo, in bytes. */
export type MemoryFacts = {
  readonly totalBytes: number;
  readonly freeBytes: number;
  readonly availableBytes: number;
  /** Undefined where the kernel does not list it, or what was read is cut before it: unknown, not 0. */
  readonly cachedBytes: number | undefined;
  readonly dirtyBytes: number | undefined;
  readonly sharedBytes: number | undefined;
  readonly slabBytes: number | undefined;
  readonly swapTotalBytes: number | undefined;
  readonly swapFreeBytes: number | undefined;
  /** The kernel's account line by line, each with why it is not known. */
  readonly lines?: MemoryLines;
};

/** /proc/meminfo and the kernel's pressure figures, in bytes: what a kernel does not list is unknown, never 0. */
export type MemoryLines = {
  /** Page cache with shared memory in it, and that of block devices. */
  readonly cachedBytes: Fact<number>;
  readonly buffersBytes: Fact<number>;
  /** Page cache of files that could be dropped now: cached and buffers less shared, dirty and being written. */
  readonly cleanBytes: Fact<number>;
  /** Dirty and being written. */
  readonly dirtyBytes: Fact<number>;
  readonly sharedBytes: Fact<number>;
  readonly slabBytes: Fact<number>;
  readonly slabReclaimableBytes: Fact<number>;
  readonly anonymousBytes: Fact<number>;
  /** Stacks, page tables, per-CPU areas and vmalloc: what the kernel counts of itself beside slab. */
  readonly kernelBytes: Fact<number>;
  /** Reserved as huge pages, used or not. */
  readonly hugeBytes: Fact<number>;
  /** Locked into memory. */
  readonly lockedBytes: Fact<number>;
  readonly swapTotalBytes: Fact<number>;
  readonly swapFreeBytes: Fact<number>;
  readonly swapCachedBytes: Fact<number>;
  readonly cmaTotalBytes: Fact<number>;
  readonly cmaFreeBytes: Fact<number>;
  readonly pressure: Fact<MemoryPressure>;
};

/** Share of the last 10 and 60 seconds, in percent, in which some or all work waited for memory. */
export type MemoryPressure = {
  readonly some10: number;
  readonly some60: number;
  readonly full10: number;
  readonly full60: number;
};

export type Gpu = {
  readonly index: number;
  readonly name: string;
  readonly uuid: string;
  /** GB10 and the like: the GPU's memory is the host's memory. */
  readonly unified: boolean;
  readonly totalBytes: Fact<number>;
  readonly freeBytes: Fact<number>;
  readonly driver: string;
  /** What nvidia-smi printed as memory of a GPU that has none of its own: to be told, never to be planned with. */
  readonly printed?: { readonly totalBytes: number; readonly freeBytes: Fact<number> };
  /** How hard it works; absent where nvidia-smi told none of it. */
  readonly heat?: GpuHeat;
  /** Present where MIG is on: its instances, which alone take work. */
  readonly mig?: Fact<readonly MigInstance[]>;
};

export type MigInstance = { readonly profile: string; readonly uuid: string };

/** What keeps nvidia-smi from telling all. */
/** What nvidia-smi tells of a GPU at this moment; a figure that it has not for this GPU is absent. */
export type GpuHeat = {
  readonly usePercent?: number;
  readonly celsius?: number;
  readonly watts?: number;
  readonly megahertz?: number;
};

export type GpuTrouble = {
  readonly kind:
    | 'no-tool'
    | 'no-driver'
    | 'version-mismatch'
    | 'hangs'
    | 'no-devices'
    | 'lost-gpu'
    | 'left-out'
    | 'devices-withdrawn'
    | 'unreadable';
  readonly why: string;
  readonly remedy: string;
  /** GPUs that were seen all the same; work on them may fail as well. */
  readonly seen: readonly Gpu[];
};

/** The kernel's side of the GPU, read without nvidia-smi. */
export type DriverFacts = {
  /** Version of the module that is loaded. */
  readonly version: Fact<string>;
  /** A GB10 works with the open module alone. */
  readonly flavour: Fact<'open' | 'proprietary'>;
  /** GPUs that the module knows. */
  readonly listed: Fact<number>;
  readonly trouble?: GpuTrouble;
};

/** Who a process belongs to, from its cgroup; decides the means by which it is stopped and given back. */
export type Owner =
  | {
      readonly kind: 'container';
      readonly runtime: 'docker' | 'podman';
      readonly id: string;
      readonly name: string;
      readonly image: string;
      readonly restartPolicy: Fact<string>;
      readonly autoRemove: Fact<boolean>;
      readonly composeProject?: string;
      /** The service of Docker Swarm whose task it is. */
      readonly swarmService?: string;
    }
  | {
      readonly kind: 'unit';
      readonly unit: string;
      readonly restart: Fact<string>;
      readonly userUnitUid?: number;
    }
  | { readonly kind: 'process'; readonly environmentReadable: boolean }
  /** A rank that firstlight started itself, or what one has left behind. */
  | { readonly kind: 'rank'; readonly name: string; readonly orphan?: Orphan }
  /** Kubernetes, containerd, rootless runtimes, desktop … : seen, named, left alone. */
  | { readonly kind: 'untouchable'; readonly what: string };

/** What belongs to no rank that runs any more, though one of ours had started it. */
export type Orphan = {
  readonly why: string;
  readonly processes: readonly { readonly pid: number; readonly startTicks: string }[];
};

/** Somebody who holds memory. One per owner: all processes of a container or unit are one holder. */
export type Holder = {
  /** Stable while it is the same thing: container id, unit with its main pid's start, or pid with its start. */
  readonly identity: string;
  /** As a person calls it: container name, unit, or the short command. */
  readonly name: string;
  readonly owner: Owner;
  readonly user: string;
  readonly pid: number;
  /** /proc/PID/stat field 22, clock ticks since boot; guards against a reused pid. */
  readonly startTicks: string;
  /** Seconds it has been running, by the node's clock. */
  readonly ageSeconds: Fact<number>;
  /** Command line, secrets masked. */
  readonly command: string;
  readonly gpuBytes: Fact<number>;
  readonly residentBytes: Fact<number>;
  /**
   * What stopping it should give back: both together where the GPU uses the host's memory, since what the driver
   * gives is not in what is resident; else the larger.
   */
  readonly bytes: number;
  readonly listens: readonly number[];
  /** Display servers and the like: never proposed to be stopped. */
  readonly protectedWhy?: string;
  /** What would start it again once it was stopped; empty or absent where nothing of the kind was seen. */
  readonly returns?: readonly Return[];
};

/** Something that brings a holder back, and what keeps it away. */
export type Return = {
  readonly by:
    | 'restart-policy'
    | 'compose'
    | 'unit'
    | 'socket'
    | 'timer'
    | 'path'
    | 'cron'
    | 'loop'
    | 'supervisor'
    | 'parent';
  /** "its restart policy always", "ollama.socket, at the next connection" */
  readonly what: string;
  /** A command, or what to do. */
  readonly keepAway: string;
  /** The step that stops it keeps this away too. */
  readonly handled: boolean;
};

export type Container = {
  readonly runtime: 'docker' | 'podman';
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly state: string;
  readonly restartPolicy: string;
  readonly autoRemove: boolean;
  readonly labels: Readonly<Record<string, string>>;
};

export type ListeningPort = {
  readonly address: string;
  readonly port: number;
  readonly pid: Fact<number>;
  readonly process: Fact<string>;
};

export type NetworkInterface = {
  readonly name: string;
  readonly up: boolean;
  /** It is down because somebody has set it so; absent where it is up, or lacks only its carrier. */
  readonly setDown?: true;
  readonly mtu: number;
  readonly speedMbps: Fact<number>;
  readonly addresses: readonly { readonly address: string; readonly prefix: number }[];
  /** Names of other nodes whose fabric address is routed over this interface. */
  readonly reaches: readonly string[];
};

export type RdmaDevice = {
  readonly device: string;
  readonly interfaceName: Fact<string>;
  readonly active: boolean;
  readonly rateGbps: Fact<number>;
};

export type ModelFile = { readonly name: string; readonly bytes: number };

export type ModelFacts =
  | { readonly present: false; readonly path: string }
  | {
      readonly present: true;
      readonly path: string;
      /** config.json as parsed, unvalidated. */
      readonly config: Fact<Readonly<Record<string, unknown>>>;
      /** metadata.total_size of model.safetensors.index.json. */
      readonly indexBytes: Fact<number>;
      /** Weight files the index names that are absent, empty, or no more than git-lfs pointers. */
      readonly missingFiles: readonly string[];
      /** Those of them that are pointers: git-lfs never fetched what they point to. */
      readonly pointerFiles?: readonly string[];
      readonly files: readonly ModelFile[];
      /**
       * Tensors by the headers of all shards, summed over what is named alike: a layer's experts are one. Absent
       * where they were not asked for.
       */
      readonly tensors?: Fact<readonly ModelFile[]>;
    };

/** An engine that could be started on this node: an image, or a program. */
export type EngineFacts = {
  readonly engine: EngineName;
  readonly where:
    | {
        readonly in: 'docker' | 'podman';
        readonly image: string;
        readonly imageId: string;
        readonly arch: string;
      }
    | { readonly in: 'process'; readonly program: string };
  readonly version: Fact<string>;
};

/** A rank that firstlight started on this node, from the node's own record. */
export type RankRecord = {
  readonly name: string;
  readonly recipe: string;
  readonly engine: EngineName;
  readonly rank: number;
  readonly run: string;
  readonly attempt: number;
  readonly in: 'docker' | 'podman' | 'process';
  /** Digest of the recipe file, of the effective recipe, and the edits between the two. */
  readonly recipeDigest: string;
  readonly effectiveDigest: string;
  readonly edits: readonly RecipeEdit[];
  readonly startedAt: string;
  readonly state: 'starting' | 'running' | 'ended';
  readonly exitCode: Fact<number>;
  /** Set once this rank's server was proved to answer. */
  readonly servingSince?: string;
  /** Where its server answers, seen from the node; absent where the rank opens no port. */
  readonly health?: { readonly address: string; readonly port: number };
  /** Name of the model at the API, and of the environment variable with its key (never the key). */
  readonly servedName?: string;
  /** How many ranks the job has in all, where the record says so. */
  readonly ranks?: number;
  readonly apiKeyEnv?: string;
  /** Somebody started it by hand; it is followed, and down stops it. */
  readonly adopted?: true;
  /** What its guard has put down, and whether that guard still runs; absent where it never had one. */
  readonly guard?: GuardRecord & { readonly alive: boolean };
  readonly folder: string;
  readonly logBytes: number;
};

/** An undo that waits on the node: what was stopped and is not given back. */
export type UndoRecord = {
  readonly id: string;
  readonly run: string;
  readonly title: string;
  readonly at: string;
  readonly sudo: boolean;
  /** `pending` until the step ran and until it was given back. */
  readonly state: 'pending' | 'restored';
};

export type LockRecord = {
  readonly owner: string;
  readonly run: string;
  readonly since: string;
  readonly ageSeconds: number;
  readonly host: string;
  readonly pid: number;
};

export type DiskFacts = { readonly path: string; readonly totalBytes: number; readonly freeBytes: number };

/** What only a look right after a failure asks for. */
export type Afterwards = {
  /** What the kernel said since the launch, as it printed it. */
  readonly kernelLog: Fact<readonly string[]>;
  /** Containers of ours, as their runtime remembers them. */
  readonly containers: Fact<
    readonly {
      readonly name: string;
      readonly state: string;
      readonly exitCode: number;
      readonly oomKilled: boolean;
      readonly error: string;
    }[]
  >;
};

/** All that one look saw on one node. Never remembered across looks. */
export type NodeFacts =
  | { readonly node: string; readonly at: string; readonly reached: false; readonly failure: Unreachable }
  | {
      readonly node: string;
      readonly at: string;
      readonly reached: true;
      readonly milliseconds: number;
      readonly host: Fact<HostFacts>;
      /** Node's clock minus ours, seconds; the error is half the round trip. */
      readonly clockOffsetSeconds: Fact<number>;
      readonly memory: Fact<MemoryFacts>;
      readonly gpus: Fact<readonly Gpu[]>;
      /** Absent in facts of before. */
      readonly driver?: DriverFacts;
      readonly holders: Fact<readonly Holder[]>;
      readonly containers: Fact<readonly Container[]>;
      readonly ports: Fact<readonly ListeningPort[]>;
      readonly interfaces: Fact<readonly NetworkInterface[]>;
      readonly rdma: Fact<readonly RdmaDevice[]>;
      readonly disks: Fact<readonly DiskFacts[]>;
      /** Absent when no recipe was given to the look. */
      readonly model?: Fact<ModelFacts>;
      readonly engines: Fact<readonly EngineFacts[]>;
      /** How root can be had: without a password, with one, or not at all. */
      readonly sudo: Fact<'free' | 'password' | 'none'>;
      readonly ranks: Fact<readonly RankRecord[]>;
      readonly owed: Fact<readonly UndoRecord[]>;
      readonly lock: Fact<LockRecord | null>;
      /** Present in a look after a failure. */
      readonly afterwards?: Afterwards;
    };

export type ReachedFacts = Extract<NodeFacts, { reached: true }>;
