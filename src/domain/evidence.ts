import type { NodeFacts } from './facts.ts';
import type { Stage } from './finding.ts';
import type { GuardRecord } from './guard.ts';
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
  /** No log of this rank was handed over: that it is silent says nothing. */
  readonly unseen?: true;
  /** What the rank's guard has put down on its node, where there is one. */
  readonly guard?: GuardRecord | undefined;
};

/** What a log is: a rank's own, or what stands beside it. */
export type LogKind = 'rank' | 'client' | 'launcher' | 'kernel' | 'daemon' | 'other';

/** A log that is no rank's: of a client, a launcher, the kernel, docker's daemon … */
export type SideLog = {
  readonly name: string;
  readonly kind: LogKind;
  /** The node it was taken on, where that is known. */
  readonly node: string | undefined;
  readonly lines: readonly LogLine[];
};

/** What somebody says of how a rank was launched by hand, beside the facts of its host. */
export type LaunchFacts = {
  readonly node: string;
  /** The command line as it was typed. */
  readonly command?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** `driver`, `kernel`, `vllm`, `torch`, `nccl`, `ray`, `cuda` …: version as printed. */
  readonly versions?: Readonly<Record<string, string>> | undefined;
};

/** What is told beside logs, where no look of ours saw the hosts. */
export type Told = {
  readonly engine?: EngineName | undefined;
  readonly facts: readonly NodeFacts[];
  readonly launched: readonly LaunchFacts[];
  /** Exit codes of ranks, by the names of their logs. */
  readonly exits: Readonly<Record<string, number>>;
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
  /** Nothing more will come: whoever does not serve by its last line will not. */
  readonly finished?: true;
  /** Logs beside the ranks'. */
  readonly side?: readonly SideLog[];
  /** How ranks were launched that are no service of ours. */
  readonly launched?: readonly LaunchFacts[];
  /** Now, ms: silence is measured against it. */
  readonly now: number;
};
