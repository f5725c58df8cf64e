import type { Event } from './event.ts';
import type { Fact, Holder, NodeFacts, RankRecord } from './facts.ts';
import type { Finding, Stage } from './finding.ts';
import type { Fit } from './fit.ts';
import type { NowLine } from './now-line.ts';
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

/** Somebody who holds memory on a node, and by which means it would be stopped. */
export type MemoryHolder = {
  readonly holder: Holder;
  /** `ask`: with consent; `ours`: without; `leave`: never, and `how` says why. */
  readonly stop: 'ask' | 'ours' | 'leave';
  /** "systemctl stop", "TERM, after 20 s KILL", or why it is left alone. */
  readonly how: string;
  /** How it is given back, or why it cannot be; absent where it is left alone. */
  readonly back?: string;
};

/** One node's memory as `firstlight memory` tells it. */
export type NodeMemory = {
  readonly node: string;
  readonly facts: NodeFacts;
  /** Whether the GPU uses the host's memory. */
  readonly unified: Fact<boolean>;
  /** Held by the driver and accounted for by no process. */
  readonly driverBytes: Fact<number>;
  readonly reserveBytes: number;
  /** What a launch could get now: available less the reserve, or free over all cards. */
  readonly canGetBytes: Fact<number>;
  /** The same once everything that may be stopped is stopped. */
  readonly canGetAfterBytes: Fact<number>;
  readonly holders: Fact<readonly MemoryHolder[]>;
  /** What would have to go for `--need`, cheapest for others first; absent without it. */
  readonly wouldGo?: Fact<
    readonly { readonly identity: string; readonly name: string; readonly bytes: number }[]
  >;
  readonly troubles: readonly Pick<CheckItem, 'level' | 'title' | 'remedy'>[];
  /** What is not known, each with why. */
  readonly unknown: readonly string[];
};

export type MemoryReport = {
  readonly kind: 'memory';
  readonly cluster: string;
  readonly milliseconds: number;
  readonly needBytes: number | undefined;
  readonly nodes: readonly NodeMemory[];
};

export type PlanReport = {
  readonly kind: 'plan';
  readonly plan: Plan;
  readonly facts: readonly NodeFacts[];
  /** Steps that the owner's policy file allows beforehand, each with "policy.yaml, line 3"; absent where it allows none. */
  readonly allowed?: readonly { readonly id: string; readonly by: string }[];
};

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
  /** What its guard put down, and whether that guard still runs; absent where it never had one. */
  readonly guard?: NonNullable<RankRecord['guard']>;
};

export type StatusReport = {
  readonly kind: 'status';
  readonly cluster: string;
  readonly services: readonly {
    readonly recipe: string;
    readonly engine: string;
    readonly run: string;
    readonly serving: boolean;
    /** What the look saw that keeps it from serving: a fabric link without a carrier. Absent where it saw nothing. */
    readonly why?: readonly { readonly title: string; readonly advice: readonly string[] }[];
    readonly since: string | undefined;
    readonly head: string;
    readonly port: number | undefined;
    readonly ranks: readonly RankStatus[];
    readonly edits: readonly string[];
  }[];
  readonly unreached: readonly { readonly node: string; readonly why: string }[];
  readonly owed: readonly { readonly node: string; readonly id: string; readonly title: string }[];
  /** Ended ranks that their guards had stopped, with nobody there to see it. */
  readonly stopped?: readonly {
    readonly node: string;
    readonly recipe: string;
    readonly rank: number;
    readonly run: string;
    readonly guard: NonNullable<RankRecord['guard']>;
  }[];
  /** Controllers that work on nodes now, by the locks they hold there. */
  readonly busy?: readonly {
    readonly nodes: readonly string[];
    readonly owner: string;
    readonly run: string;
    readonly since: string;
    /** Where that run stands, where it is one of this journal. */
    readonly now?: NowLine;
    /** Steps that the run waits to be allowed; absent while it waits for no answer. */
    readonly asks?: readonly {
      readonly id: string;
      readonly node: string;
      readonly title: string;
      readonly bytes: number;
    }[];
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
  /** With --remedies: what runs proved, newest first. */
  readonly remedies?: readonly {
    readonly cluster: string;
    readonly model: string;
    readonly engine: EngineName;
    readonly remedy: string;
    readonly cause: string;
    readonly title: string;
    readonly run: string;
    readonly at: string;
  }[];
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

/** What `diagnose --json` prints, this and nothing beside it. */
export type DiagnosisAnswer = {
  /** Slug of docs/causes.md, `unknown` or `no-fault`. */
  readonly cause: string;
  /** Its letter in docs/causes.md; null where not even that is known. */
  readonly family: string | null;
  /** A log's name, or `head` or `worker` without a log, or `both`, `launcher`, `network`, `client`, `none`. */
  readonly atFault: string;
  readonly confidence: number;
  /** Lines of the logs, numbered from 1 and unaltered. */
  readonly evidence: readonly { readonly log: string; readonly line: number; readonly text: string }[];
  readonly consequences: readonly string[];
  readonly advice: readonly string[];
  readonly remedy: { readonly name: string; readonly title: string; readonly cost: string } | null;
  readonly alternatives: readonly { readonly cause: string; readonly confidence: number }[];
  /**
   * What is over, oldest first: what stopped a run before it served, or an earlier start in the same logs. Absent where
   * nothing did.
   */
  readonly earlier?: readonly DiagnosisEarlier[];
  /** How far each rank had come; only where the logs end before it serves and nothing in them failed. */
  readonly reached?: readonly Reached[];
};

/** How far a rank had come by its log. */
export type Reached = {
  readonly log: string;
  readonly stage: Stage;
  readonly percent: number | null;
  /** The line that tells so; null where none does. */
  readonly line: number | null;
  readonly lastLine: number;
  /** The time that its last stamped line bears, as it stands there. */
  readonly lastAt: string | null;
};

/** A failure that is over: of an attempt of a run, or of an earlier start in the same logs. */
export type DiagnosisEarlier = Pick<
  DiagnosisAnswer,
  'cause' | 'family' | 'atFault' | 'confidence' | 'evidence' | 'advice' | 'remedy'
> & {
  /** The attempt of the run. */
  readonly attempt?: number;
  /** The engine that was taken instead, where that ended it. */
  readonly engine?: EngineName;
};

export type DiagnoseReport = {
  readonly kind: 'diagnose';
  readonly answer: DiagnosisAnswer;
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

/** Where a run was packed, and what is in it. */
export type BundleReport = {
  readonly kind: 'bundle';
  readonly run: string;
  readonly file: string;
  readonly files: readonly string[];
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

/** Whether a model fits; printed as JSON it is the fit alone. */
export type FitReport = {
  readonly kind: 'fit';
  /** "Qwen3.6-35B-A3B, BF16, on vllm over 2 nodes": what was asked. */
  readonly title: string;
  readonly unified: boolean;
  readonly fit: Fit;
};

/** Where one sentence is the whole answer. */
export type SaidReport = { readonly kind: 'said'; readonly text: string };

export type Report =
  | SaidReport
  | CheckReport
  | FitReport
  | MemoryReport
  | PlanReport
  | RunReport
  | StatusReport
  | LogsReport
  | RunsReport
  | ShowReport
  | DiagnoseReport
  | BundleReport
  | ChatReport
  | InitReport
  | AdoptReport
  | LabReport;
