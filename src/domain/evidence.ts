import type { NodeFacts } from './facts.ts';
import type { Stage } from './finding.ts';
import type { Service } from './plan.ts';
import type { EngineName, Recipe } from './recipe.ts';

/** One line of a rank's log. `text` is unaltered but for control characters; `at` is our receive time in ms, less the clock offset. */
export type LogLine = { readonly line: number; readonly at: number; readonly text: string };

export type RankEvidence = {
  readonly rank: number;
  readonly role: 'head' | 'worker';
  readonly node: string;
  readonly lines: readonly LogLine[];
  readonly stage: Stage;
  readonly percent: number | undefined;
  /** When the stage or its percent last moved, ms. */
  readonly movedAt: number;
  readonly ended:
    | { readonly code: number | undefined; readonly requested: boolean; readonly at: number }
    | undefined;
};

/** One attempt, all ranks: everything a diagnosis may look at. Plain data, so that it can be replayed. */
export type Evidence = {
  readonly engine: EngineName;
  readonly recipe: Recipe;
  readonly services: readonly Service[];
  readonly ranks: readonly RankEvidence[];
  /** What the look before the launch saw. */
  readonly before: readonly NodeFacts[];
  /** What a look right after the failure saw; empty while it is provisional. */
  readonly after: readonly NodeFacts[];
  /** Now, ms: silence is measured against it. */
  readonly now: number;
};
