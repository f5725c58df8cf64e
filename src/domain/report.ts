import type { Event } from './event.ts';
import type { NodeFacts } from './facts.ts';
import type { Finding, Stage } from './finding.ts';
import type { Plan } from './plan.ts';
import type { EngineName } from './recipe.ts';

/** One verdict of `check`: what, how bad, and what to do. */
export type CheckItem = {
  readonly level: 'blocks' | 'warning' | 'unknown' | 'fine';
  /** One word: memory, model, image, names, fabric, ports, clock, sudo, ssh … */
  readonly topic: string;
  readonly node: string;
  readonly title: string;
  readonly remedy: string | undefined;
};

export type CheckReport = {
  readonly kind: 'check';
  readonly cluster: string;
  readonly recipe: string | undefined;
  readonly milliseconds: number;
  readonly facts: readonly NodeFacts[];
  readonly items: readonly CheckItem[];
  readonly memory: Plan['memory'];
};

export type PlanReport = { readonly kind: 'plan'; readonly plan: Plan; readonly facts: readonly NodeFacts[] };

/** Result of up, down and restore: the run and how it ended. */
export type RunReport = {
  readonly kind: 'run';
  readonly run: string;
  readonly ended: Extract<Event, { type: 'run-ended' }>;
};

export type RankStatus = {
  readonly rank: number;
  readonly node: string;
  readonly role: 'head' | 'worker';
  readonly state: 'running' | 'starting' | 'ended' | 'absent' | 'unknown';
  readonly health: 'answers' | 'does-not-answer' | 'unknown' | 'none';
  readonly text: string;
};

export type StatusReport = {
  readonly kind: 'status';
  readonly cluster: string;
  readonly services: readonly {
    readonly recipe: string;
    readonly engine: string;
    readonly run: string;
    readonly serving: boolean;
    readonly since: string | undefined;
    readonly head: string;
    readonly port: number | undefined;
    readonly ranks: readonly RankStatus[];
    readonly edits: readonly string[];
  }[];
  readonly unreached: readonly { readonly node: string; readonly why: string }[];
  readonly owed: readonly { readonly node: string; readonly id: string; readonly title: string }[];
  /** Controllers that work on nodes now, by the locks they hold there. */
  readonly busy?: readonly {
    readonly nodes: readonly string[];
    readonly owner: string;
    readonly run: string;
    readonly since: string;
  }[];
};

export type LogsReport = {
  readonly kind: 'logs';
  readonly run: string;
  readonly attempt: number;
  readonly lines: readonly {
    readonly rank: number;
    readonly node: string;
    readonly line: number;
    readonly at: number;
    readonly stage: Stage;
    readonly text: string;
  }[];
};

export type RunsReport = {
  readonly kind: 'runs';
  readonly runs: readonly {
    readonly run: string;
    readonly operation: string;
    readonly recipe: string | undefined;
    readonly startedAt: string;
    readonly seconds: number | undefined;
    readonly outcome: string;
  }[];
};

export type ShowReport = { readonly kind: 'show'; readonly run: string; readonly events: readonly Event[] };

export type DiagnoseReport = {
  readonly kind: 'diagnose';
  /** Empty for logs of a pair that was launched by hand. */
  readonly run: string;
  /** With the attempt of the run in which each was made. */
  readonly findings: readonly (Finding & { readonly attempt?: number })[];
  readonly engine?: EngineName;
  /** The log files that were read instead of a run; `silentSeconds` since the file last changed. */
  readonly logs?: readonly {
    readonly rank: number;
    readonly role: 'head' | 'worker';
    readonly node: string;
    readonly source: string;
    readonly lines: number;
    readonly stage: Stage;
    readonly percent: number | undefined;
    readonly silentSeconds: number;
  }[];
};

export type ChatReport = {
  readonly kind: 'chat';
  readonly answer: string;
  readonly reasoning: string;
  readonly finish: string;
  readonly firstTokenSeconds: number | undefined;
  readonly tokensPerSecond: number | undefined;
  readonly outputTokens: number | undefined;
};

/** What `adopt` found where it was told nothing: candidates, and the command that adopts them. */
export type AdoptReport = {
  readonly kind: 'adopt';
  readonly ranks: readonly {
    readonly rank: number;
    readonly node: string;
    /** Pid or container. */
    readonly target: string;
    readonly text: string;
  }[];
  readonly command: string | undefined;
  /** The same as input of a second `adopt`. */
  readonly adopts:
    | { readonly rank: readonly string[]; readonly engine: EngineName; readonly port?: number }
    | undefined;
};

export type InitReport = { readonly kind: 'init'; readonly file: string; readonly nodes: number };

export type LabReport = {
  readonly kind: 'lab';
  readonly text: string;
  readonly folder: string | undefined;
  readonly next: readonly string[];
};

export type Report =
  | CheckReport
  | PlanReport
  | RunReport
  | StatusReport
  | LogsReport
  | RunsReport
  | ShowReport
  | DiagnoseReport
  | ChatReport
  | InitReport
  | AdoptReport
  | LabReport;
