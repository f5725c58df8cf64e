import type { Command, Word } from './command.ts';
import type { EngineName, Recipe, RecipeEdit } from './recipe.ts';

export type PhaseKind = 'clear' | 'supply' | 'launch';

/** How a step is taken back. The command looks first, so that giving back twice does no harm. */
export type Undo =
  | { readonly kind: 'command'; readonly title: string; readonly command: Command }
  | { readonly kind: 'irreversible'; readonly why: string }
  | { readonly kind: 'nothing' };

/** What a person needs to know about the holder that a step stops. */
export type StepTarget = {
  readonly identity: string;
  readonly name: string;
  /** "system service, user ollama" */
  readonly what: string;
  readonly kind: 'container' | 'unit' | 'process';
  readonly user: string;
  readonly image?: string;
  readonly pid: number;
  readonly bytes: number;
  readonly ageSeconds?: number;
  readonly listens: readonly number[];
  /** What would start it again, where no step keeps that away, and what would. */
  readonly returns?: readonly { readonly what: string; readonly keepAway: string }[];
  /** Ids of other steps that stop the other half of the same multi-node job. */
  readonly job?: readonly string[];
};

export type Step = {
  /** Hash of node, kind and identity: survives planning again. */
  readonly id: string;
  readonly phase: PhaseKind;
  readonly kind:
    | 'stop-container'
    | 'stop-unit'
    | 'stop-process'
    | 'await-memory'
    | 'drop-cache'
    | 'keep-shared-memory';
  readonly node: string;
  readonly title: string;
  readonly why: string;
  readonly risk: string;
  /** Steps that stop foreign work run only with consent to this very id. */
  readonly needsConsent: boolean;
  readonly target?: StepTarget;
  /** Exit 0: still what was seen. Anything else: the step is skipped and the next look decides. */
  readonly guard?: Command;
  readonly command: Command;
  readonly undo: Undo;
  /** Repeat until exit 0: waiting is a command with retry. */
  readonly retry?: { readonly everySeconds: number; readonly forSeconds: number };
  /** A failure of this step is told and does not stop the phase. */
  readonly optional?: boolean;
};

/** A long-running rank to start and follow. Everything the rank runner needs, and nothing it must decide. */
export type Service = {
  /** `<recipe>-r<rank>`; the claim on the node, and the container's name with `firstlight-` before it. */
  readonly name: string;
  readonly node: string;
  readonly rank: number;
  readonly role: 'head' | 'worker';
  readonly engine: EngineName;
  readonly in: 'docker' | 'podman' | 'process';
  /** docker and podman: the whole `docker run …` line less `--name`, `--label`, `--env-file`, `-d`; process: program and arguments. */
  readonly argv: readonly Word[];
  readonly env: Readonly<Record<string, string>>;
  /** Environment variables whose values are secrets: name on the node → name of the secret here. */
  readonly secretEnv: Readonly<Record<string, string>>;
  readonly recipe: string;
  readonly recipeDigest: string;
  readonly effectiveDigest: string;
  readonly edits: readonly RecipeEdit[];
  /** Port of the API (head) or of the health server (SGLang workers); absent where the rank opens none. */
  readonly healthPort?: number;
  /** Address on which that port answers, seen from the node itself. */
  readonly healthAddress?: string;
  /** Name of the model at the API. */
  readonly servedName: string;
  /** How many ranks the job has in all: one that is out of sight must not be forgotten. */
  readonly ranks?: number;
  /** Where the other nodes know this rank's node: its address on the fabric; absent on a single node. */
  readonly address?: string;
  /** It runs already: to be followed, not started. */
  readonly running?: boolean;
};

export type Phase = {
  readonly kind: PhaseKind;
  readonly steps: readonly Step[];
  readonly services: readonly Service[];
};

/** Predicted memory of one node, bytes. */
export type NodeMemoryPlan = {
  readonly node: string;
  readonly weightsBytes: number;
  readonly kvBytes: number;
  readonly engineBytes: number;
  readonly graphsBytes: number;
  readonly sumBytes: number;
  readonly errorBytes: number;
  /** MemAvailable (or GPU free) now, and after clearing, less the reserve. */
  readonly canGetBytes: number;
  readonly canGetAfterClearingBytes: number;
  readonly verdict: 'fits' | 'may-boot' | 'does-not-fit' | 'unknown';
  /** One sentence per part: where the number comes from. */
  readonly rules: readonly string[];
};

/** Something no step of this plan can mend. */
export type Blocker = {
  readonly cause: string;
  readonly node: string | undefined;
  readonly title: string;
  /** Two sentences at most; left out where the title says all. */
  readonly why?: string;
  readonly advice: readonly string[];
  /** The user's input is at fault (exit 2), not the cluster's state (exit 1). */
  readonly userError: boolean;
  /** It lies with this engine's image or program: the recipe's next engine may do. */
  readonly engineOnly?: boolean;
  /** What was seen of it, as a finding's values; a remedy for its cause may need them. */
  readonly values?: Readonly<Record<string, string>>;
};

export type Warning = { readonly node: string | undefined; readonly title: string; readonly advice: string };

export type Plan = {
  /** Hash over steps, services and blockers; never over figures. */
  readonly digest: string;
  readonly engine: EngineName;
  readonly recipe: Recipe;
  readonly recipeDigest: string;
  readonly effectiveDigest: string;
  readonly edits: readonly RecipeEdit[];
  /** Node names by rank. */
  readonly ranks: readonly string[];
  readonly phases: readonly Phase[];
  readonly memory: readonly NodeMemoryPlan[];
  readonly blockers: readonly Blocker[];
  readonly warnings: readonly Warning[];
  /** `empty`: all ranks run already; `follow`: they run, and whether they serve is to be seen. */
  readonly state: 'empty' | 'work' | 'blocked';
};

/** Bytes on a node of what was allowed to be stopped there already: it goes too, and is not asked about again. */
export function allowedBytes(plan: Plan, consented: readonly string[], node: string): number {
  return plan.phases
    .flatMap(({ steps }) => steps)
    .filter((step) => step.node === node && consented.includes(step.id))
    .reduce((sum, step) => sum + (step.target?.bytes ?? 0), 0);
}
