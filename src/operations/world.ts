import type { Cluster } from '../domain/cluster.ts';
import type { Event } from '../domain/event.ts';
import type { MemoryReport } from '../domain/report.ts';
import type { Journal } from '../journal/journal.ts';
import type { Hosts, Secrets } from '../remote/host.ts';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after the time, or rejects with the signal's reason. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** What a live face may show and no journal keeps: log lines and the memory beat of a rank's node. */
export type Live =
  | {
      readonly kind: 'lines';
      readonly rank: number;
      readonly node: string;
      readonly lines: readonly string[];
    }
  /** A piece of a chat answer as it streams. */
  | { readonly kind: 'text'; readonly part: 'answer' | 'reasoning'; readonly text: string }
  /** A host, or a jump host, that has said nothing for some seconds: it is asked whether it is still there. */
  | { readonly kind: 'quiet'; readonly host: string }
  | { readonly kind: 'beat'; readonly node: string; readonly availableBytes: number | undefined }
  /** One more look at who holds the memory, of `memory --watch`. */
  | { readonly kind: 'memory'; readonly report: MemoryReport };

/** The only thing with hands. */
export interface World {
  readonly cluster: Cluster;
  /** Path of the cluster file, which need not exist yet. */
  readonly clusterFile: string;
  /** Hosts of a cluster that is not in the file (yet). */
  readonly openHosts: (cluster: Cluster) => Hosts;
  readonly hosts: Hosts;
  readonly secrets: Secrets;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly live: (update: Live) => void;
  /** Hands an event of another journal (a lab's) on to the face. */
  readonly told: (event: Event) => void;
  readonly controller: { readonly host: string; readonly user: string; readonly pid: number };
  /** Which face asks, as a consent's record tells it; "on the command line" where it is left out. */
  readonly face?: string;
  readonly version: string;
}
