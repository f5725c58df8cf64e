import type { World } from '../../operations/world.ts';
import type { EngineSamples } from './engine-samples.ts';
import type { Jobs } from './jobs.ts';
import type { Looks } from './looks.ts';
import type { RunStates } from './run-states.ts';
import type { Tails } from './tails.ts';

/** What all requests of one server share. */
export type Desk = {
  /** The World of the cluster file as it is now; its signal ends with the server. */
  world(): World;
  readonly readOnly: boolean;
  readonly states: RunStates;
  readonly looks: Looks;
  readonly engine: EngineSamples;
  readonly tails: Tails;
  readonly jobs: Jobs;
  /** What the server counts of itself. */
  meters(): { readonly streams: number; readonly requests: ReadonlyMap<string, number> };
  /** Takes secret values out of what is sent. */
  readonly scrub: (text: string) => string;
  /** Tells the terminal of a mistake of ours. */
  readonly bug: (error: unknown) => void;
};
