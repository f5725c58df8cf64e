import type { RecipeEdit } from './recipe.ts';

/** Stages of a rank, in order. `ended` is no stage: see rank-ended. */
export const STAGES = ['start', 'rendezvous', 'weights', 'kv', 'graphs', 'warmup', 'serving'] as const;
export type Stage = (typeof STAGES)[number];

/** One line of one rank, quoted as it stands in that rank's log (line numbers from 1). */
export type Quote = {
  readonly rank: number;
  readonly node: string;
  readonly line: number;
  readonly text: string;
  /** Name of the log where it is no rank's. */
  readonly log?: string;
};

/** Why it failed. `cause` is a slug of the closed list in docs/causes.md, or `unknown`. */
export type Finding = {
  readonly cause: string;
  /** Node at fault by name; undefined where the cause lies on none of them. */
  readonly node: string | undefined;
  readonly rank: number | undefined;
  readonly role: 'head' | 'worker' | undefined;
  readonly stage: Stage | undefined;
  readonly final: boolean;
  readonly confidence: number;
  /** The cause as one plain sentence that names the node. */
  readonly title: string;
  /** Two sentences at most. */
  readonly why: string;
  readonly quotes: readonly Quote[];
  /** What followed from it on other ranks, told apart. */
  readonly consequences: readonly string[];
  /** What a person can do: each a sentence or a command. */
  readonly advice: readonly string[];
  /** Values taken from the evidence: address, port, flag, path … */
  readonly values: Readonly<Record<string, string>>;
  /** Letter of the family in docs/causes.md, where at least that is known. */
  readonly family?: string;
  /** Where the fault lies when it is no single node. */
  readonly atFault?: 'both' | 'launcher' | 'network' | 'client' | 'none';
  /** Other causes that the evidence would fit, likeliest first. */
  readonly alternatives?: readonly { readonly cause: string; readonly confidence: number }[];
};

/** A cure that was chosen: what it edits in the recipe (nothing: look again), and what it costs the user. */
export type Treatment = {
  readonly remedy: string;
  readonly cause: string;
  readonly node: string | undefined;
  readonly title: string;
  readonly cost: string;
  readonly edits: readonly RecipeEdit[];
};
