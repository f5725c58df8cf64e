/** Sizes in GiB, as a person would write them. */
export type Holding = {
  /** Memory on the GPU, and resident memory besides it: on unified memory both come out of one pot. */
  readonly gpuGiB: number;
  readonly residentGiB: number;
  /** Takes what is there, up to `gpuGiB`, and leaves only this much free. */
  readonly leavesGiB?: number;
};

/** Somebody who holds memory on a lab host, or will. `name` is what consents and timelines call it by. */
export type StoryHolder = Holding & {
  readonly name: string;
  readonly user: string;
  readonly uid: number;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly listens: readonly { readonly address: string; readonly port: number }[];
  /** Not there at the start: the timeline brings it. */
  readonly absent?: boolean;
  /** Does not end on SIGTERM. */
  readonly stubborn?: boolean;
  /** While it runs the disk has next to no time for others. */
  readonly busyDisk?: boolean;
} & (
    | {
        readonly kind: 'container';
        readonly image: string;
        readonly restart: 'no' | 'always' | 'unless-stopped' | 'on-failure';
        readonly autoRemove: boolean;
        readonly labels: Readonly<Record<string, string>>;
      }
    | {
        readonly kind: 'unit';
        readonly description: string;
        readonly restart: 'no' | 'always' | 'on-failure';
        readonly restartSeconds: number;
        /** A unit of this user's own manager. */
        readonly userUnit?: boolean;
      }
    | {
        readonly kind: 'process';
        /** Something that nobody sees starts it again, so many seconds after its end: a shell loop, somebody's script. */
        readonly comesBackSeconds?: number;
      }
  );

/**
 * How nvidia-smi may be on a host: one GB10 prints numbers for memory it has not; driver 610 names its parts anew; a
 * wedged driver makes it hang; the driver was updated, is not loaded, or has lost its GPU.
 */
export type SmiState =
  | 'prints-memory'
  | 'driver-610'
  | 'hangs'
  | 'version-mismatch'
  | 'driver-not-loaded'
  | 'gpu-lost';

export type StoryHost = {
  readonly name: string;
  readonly user: string;
  readonly management: {
    readonly address: string;
    readonly prefix: number;
    /** Whether the controller can reach it; else the host is reached through the first one. */
    readonly fromController: boolean;
  };
  readonly fabric: {
    readonly address: string;
    readonly prefix: number;
    /** Address of the same cable's second path, on a subnet of its own. */
    readonly second: string;
    /** Which of the two cages the cable is in: decides the interface names. */
    readonly cage: 0 | 1;
  };
  readonly totalGiB: number;
  /** What the system itself uses and never gives back. */
  readonly systemGiB: number;
  /** Page cache at the start. */
  readonly cacheGiB: number;
  /** Of that, what is dirty, locked or in use and never given back. */
  readonly stuckCacheGiB?: number;
  /** Version of the NVIDIA driver, if another than usual. */
  readonly driver?: string;
  /** KiB of memory that a process may lock, where limits.d says a number. */
  readonly memlockKib?: number;
  /** Where the driver finds no memory, the host answers nobody for so long. */
  readonly starvesSeconds?: number;
  /** Most tasks that the services together may have, containers too. */
  readonly pidsMax?: number;
  /** Files that lie there besides: path and text. */
  readonly files?: Readonly<Record<string, string>>;
  /** The kernel's release, if another than usual. */
  readonly kernel?: string;
  /** What nvidia-smi does there, if not what it usually does. */
  readonly smi?: SmiState;
  readonly etcHosts: 'own-name-on-loopback' | 'own-name-on-management' | 'right';
  /** undefined: sudo asks for no password. */
  readonly sudoPassword: string | undefined;
  readonly hasModel: boolean;
  /** What its model's config.json has otherwise; parts of parts are laid over too. */
  readonly model?: Readonly<Record<string, unknown>>;
  /** Its model answers at once, and its tokenizer has no marks for thoughts. */
  readonly unthinking?: true;
  /** What the model hub answers it: without, its name leads nowhere. */
  readonly hub?: 'rate-limits';
  /** Repositories of which a snapshot lies in the user's cache of the hub. */
  readonly hubCache?: readonly string[];
  /** What its ranks lack besides their image: kernels for requests, where none was served there before (`request-kernels`). */
  readonly lacks?: readonly string[];
  readonly holders: readonly StoryHolder[];
};

export type StoryImage = {
  readonly engine: 'sglang' | 'vllm';
  readonly reference: string;
  readonly arch: 'arm64' | 'amd64';
  /** Variables that the image's own start scripts remove before the engine sees them. */
  readonly unsets: readonly string[];
  /**
   * Programs that it should have and has not, flags (`--nnodes`) that its engine is too old for, and what its compilers
   * and kernels cannot do on a GB10 (`ptxas-sm_121a`, `expert-kernels-sm_121`), or whose code is broken
   * (`speculative-decoding`), and architectures that its engine does not have.
   */
  readonly lacks?: readonly string[];
  /** Its start script starts the engine once more when that ends. */
  readonly startsAgain?: true;
  /** Variables without which its start script ends. */
  readonly requires?: readonly string[];
  /** Version of its NCCL, if another than usual. */
  readonly nccl?: string;
  /** Files that it brings: path and text. */
  readonly files?: Readonly<Record<string, string>>;
};

/**
 * What the timeline waits for: a rank starts, reads its weights, has its KV cache too; the head is asked its first
 * question; the answer of the model was proved; a rank has ended.
 */
export type StoryMoment =
  | 'rank-started'
  | 'loading'
  | 'no-memory'
  | 'pooled'
  | 'asked'
  | 'serving'
  | 'rank-ended';

/**
 * What happens to a node. A cut pulls the cable by which the others reach it, and plugs it in again unless `for-ever`;
 * a reload of systemd leaves the GPU out of the device rules of the containers that run.
 */
export type StoryHappening =
  | { readonly startHolder: string }
  | { readonly endHolder: string }
  | { readonly reloadSystemd: true }
  /** Files of that size are read: they stay in the page cache as far as there is room. */
  | { readonly readsGiB: number }
  /** Files are looked at, and what the kernel remembers of them takes that much until it is told to forget. */
  | { readonly slabGiB: number }
  /** The system itself takes that much more, for good. */
  | { readonly systemGiB: number }
  /** What held that much has just ended, and the driver has not given it back yet. */
  | { readonly endedGiB: number }
  /** The driver gives back what it owes. */
  | { readonly givesBack: true }
  /** Somebody ends the engines in the containers of the ranks there, and not the containers' own start scripts. */
  | { readonly endEngines: true }
  | { readonly cutSeconds: number | 'for-ever' }
  | { readonly reboot: true }
  | { readonly endRanks: true };

/** A step of the timeline: once `when` is seen on `node`, or on the node `seenOn`, it happens there, once. */
export type StoryTurn = {
  readonly when: StoryMoment;
  readonly seenOn?: string;
  readonly node: string;
  readonly afterSeconds?: number;
} & StoryHappening;

/** A whole story as data: the world at its start, what happens, what the person answers, how it must end. */
export type Story = {
  readonly name: string;
  readonly title: string;
  readonly cluster: string;
  readonly hosts: readonly StoryHost[];
  readonly images: readonly StoryImage[];
  /** Folders that are one and the same on every host, as on a network file system. */
  readonly shares?: readonly string[];
  /** Rules between hosts: connections to that port are dropped, ssh never. */
  readonly firewall: readonly { readonly from: string; readonly to: string; readonly port: number }[];
  /** A recipe as people write it. */
  readonly recipe: Readonly<Record<string, unknown>>;
  readonly timeline: readonly StoryTurn[];
  /** Holders that the person of the story agrees to stop; never all. */
  readonly consents: readonly { readonly node: string; readonly holder: string }[];
  /** Passwords that the person types, by node. */
  readonly passwords: Readonly<Record<string, string>>;
  readonly expect: {
    /** Each must be matched by some event, field by field. */
    readonly events: readonly Readonly<Record<string, string>>[];
    readonly outcome: string;
    /** Whether `down --restore` follows and must end `restored`. */
    readonly restored: boolean;
  };
};

export const GIB = 2 ** 30;
