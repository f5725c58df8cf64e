/** What is live and in no journal: the last beats of the nodes, the last lines of the ranks. */
export type LiveState = {
  /** Node → MemAvailable in bytes since the last look. */
  readonly beats: ReadonlyMap<string, number>;
  readonly lines: readonly { readonly rank: number; readonly at: number; readonly text: string }[];
  readonly interrupted: boolean;
};

export const noLive: LiveState = { beats: new Map(), lines: [], interrupted: false };
