import type { Fact } from './facts.ts';
import type { EngineName } from './recipe.ts';

/** What a look wants to know beyond the host itself. */
export type LookRequest = {
  /** Only what tells of memory and who holds it. */
  readonly memoryOnly?: boolean;
  /** How root is to be had, as a look before saw it: not asked again, since each question is a line in the host's log. */
  readonly sudo?: Fact<'free' | 'password' | 'none'>;
  /** The model's folder to look into, or undefined without a recipe. */
  readonly modelPath: string | undefined;
  /** Read the headers of its safetensors files too: every tensor's size, for an exact fit. */
  readonly modelHeaders?: boolean;
  /** After a failure: how many seconds back the kernel's log is read. */
  readonly sinceSeconds?: number;
  /** Which runtime is asked for the images; docker where none is named. */
  readonly runtime?: 'docker' | 'podman';
  /** Images and programs to look for, by engine. */
  readonly images: readonly { readonly engine: EngineName; readonly image: string }[];
  readonly programs: readonly { readonly engine: EngineName; readonly program: string }[];
  /** Fabric addresses of the other nodes: which interface reaches them. */
  readonly peers: readonly { readonly node: string; readonly address: string }[];
};

/**
 * One part of the look: a POSIX sh script that works with busybox tools, runs in its own subshell under its
 * own timeout with stdin from /dev/null, LC_ALL=C, and `$R` set to the root prefix (empty on every real host).
 */
export type Probe = {
  readonly name: string;
  readonly script: string;
  readonly timeoutSeconds: number;
  /** It reads what the kernel has at hand and waits for nobody: such probes share one process. */
  readonly quick?: true;
};

export type ProbeOutput = {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
};
