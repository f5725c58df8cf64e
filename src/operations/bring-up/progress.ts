import type { TreatInput, Tried } from '../../diagnosis/treat.ts';
import type { Node } from '../../domain/cluster.ts';
import type { Finding, Treatment } from '../../domain/finding.ts';
import {
  type EngineName,
  editRecipe,
  type Recipe,
  type RecipeEdit,
  type RecipeFile,
} from '../../domain/recipe.ts';
import type { RunEnd } from '../in-run.ts';
import type { Recorder } from '../recorder.ts';
import type { World } from '../world.ts';

/** What `up` was asked for besides the recipe. */
type UpInput = {
  /** Ids of steps allowed on the command line. */
  readonly consent: readonly string[];
  /** Digest of the plan that was seen and may be carried out; any, where left out. */
  readonly plan?: string | undefined;
  readonly replace: boolean;
  /** Wait for somebody's consent, or end without it. */
  readonly wait: boolean;
  /** Nothing that earlier runs proved or saw fail is taken in. */
  readonly anew?: boolean | undefined;
};

/** What one bring-up was given; none of it changes while it runs. */
export type BringUp = {
  readonly world: World;
  readonly recorder: Recorder;
  readonly file: RecipeFile;
  /** The recipe's nodes by rank, head first. */
  readonly nodes: readonly Node[];
  readonly input: UpInput;
  /** Chooses the remedy, in place of `diagnosis/treat.ts`: for tests that leave one out. */
  readonly treat?: (input: TreatInput) => Treatment | undefined;
};

/** A remedy that was applied after `attempt`, and is neither proved nor failed yet. */
export type Pending = {
  readonly finding: Finding;
  readonly treatment: Treatment;
  readonly attempt: number;
};

/** All that one turn of the loop hands to the next. What the hosts show is not among it: that is looked at anew. */
export type Progress = {
  readonly engine: EngineName;
  /** Whether what is known of this engine here was taken in before its first launch. */
  readonly begun: boolean;
  /** Engines to fall back on, in the recipe's order. */
  readonly left: readonly EngineName[];
  readonly edits: readonly RecipeEdit[];
  /** Number of the newest launch (or of the job that was taken up), from 1; 0 before. */
  readonly attempt: number;
  readonly pending: Pending | undefined;
  readonly tried: readonly Tried[];
  /** Whether this run has changed or started anything. */
  readonly worked: boolean;
  /** How often each holder was stopped, by node, kind of step and name. */
  readonly stopped: ReadonlyMap<string, number>;
  /** Nodes on which steps that need root, and are optional, are not proposed again. */
  readonly rootless: ReadonlySet<string>;
  /** Nodes whose memory did not come back after a stop, with how much was there in the end. */
  readonly short: ReadonlyMap<string, string>;
  /** Nodes whose model was taken out of the page cache: doing it again would change nothing. */
  readonly evicted: ReadonlySet<string>;
};

/** Before the first turn: nothing was tried, and the recipe's first engine is next. */
export function atStart({ file }: { readonly file: { readonly recipe: Recipe } }): Progress {
  const [engine = 'sglang', ...left] = file.recipe.engines;
  return {
    begun: false,
    engine,
    left,
    edits: [],
    attempt: 0,
    pending: undefined,
    tried: [],
    worked: false,
    stopped: new Map(),
    rootless: new Set(),
    evicted: new Set(),
    short: new Map(),
  };
}

/** How a move of the loop ends: with the run, or with what the next turn starts from. */
export type Move =
  | { readonly kind: 'ended'; readonly end: RunEnd }
  | { readonly kind: 'again'; readonly progress: Progress };

export function ended(end: RunEnd): Move {
  return { kind: 'ended', end };
}

export function again(progress: Progress): Move {
  return { kind: 'again', progress };
}

/** The end of a run whose model does not answer; `why` is one sentence that says what to do. */
export function notServing(why: string): RunEnd {
  return { outcome: 'not-serving', why, exit: 1 };
}

/** The recipe with the remedies so far. */
export function recipeNow(up: BringUp, progress: Progress): Recipe {
  return editRecipe(up.file.recipe, progress.edits);
}
