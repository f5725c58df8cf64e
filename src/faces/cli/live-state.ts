import type { Panel } from './keys.ts';
import type { LiveLine } from './live-lines.ts';

/** What is live and in no journal: the last beats of the nodes, the last lines of the ranks, what a key opened. */
export type LiveState = {
  /** Node → MemAvailable in bytes since the last look. */
  readonly beats: ReadonlyMap<string, number>;
  /** Node → when its beat came, ms; a beat without is taken for one of now. */
  readonly beatAt?: ReadonlyMap<string, number>;
  readonly lines: readonly LiveLine[];
  readonly interrupted: boolean;
  /** Whether keys are read, so that the last row names them. */
  readonly keys?: boolean;
  readonly panel?: Panel | undefined;
  /** First row of the panel that is shown, from 0. */
  readonly top?: number;
};

export const noLive: LiveState = { beats: new Map(), lines: [], interrupted: false };
