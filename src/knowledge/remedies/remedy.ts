import type { Evidence } from '../../domain/evidence.ts';
import type { NodeFacts } from '../../domain/facts.ts';
import type { Finding } from '../../domain/finding.ts';
import type { EngineName, Recipe, RecipeEdit } from '../../domain/recipe.ts';

export type RemedyInput = {
  /** The effective recipe of the failed attempt. */
  readonly recipe: Recipe;
  readonly engine: EngineName;
  readonly finding: Finding;
  /** The newest look. */
  readonly facts: readonly NodeFacts[];
  readonly evidence: Evidence;
};

/** One way to cure a cause, by an edit of what is wanted. It touches nothing itself: the next plan does. */
export type Remedy = {
  readonly name: string;
  readonly causes: readonly string[];
  /** What is done, as one sentence without a full stop. */
  title(input: RemedyInput): string;
  /** What the user pays for it, in words; "nothing" where it is free. */
  cost(input: RemedyInput): string;
  /** The edits; none (an empty list) where looking and planning again is the cure; undefined where it cannot help. */
  apply(input: RemedyInput): readonly RecipeEdit[] | undefined;
};

/** How often a remedy is tried against one cause with one engine. */
export const REMEDY_BOUND = 1;
