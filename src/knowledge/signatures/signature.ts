import type { Evidence, LogKind, LogLine } from '../../domain/evidence.ts';
import type { Stage } from '../../domain/finding.ts';
import type { Family } from '../causes.ts';

/**
 * A form of line. All literals of all patterns are looked for in one pass; the regex runs on the message of those
 * lines only that hold one of this pattern's literals (ASCII).
 */
export type Pattern = { readonly literals: readonly string[]; readonly regex: RegExp };

/** Literals of which the line must hold one, and the form of its message (what stands after prefixes and level). */
export function pattern(literals: string | readonly string[], regex: RegExp): Pattern {
  return { literals: typeof literals === 'string' ? [literals] : literals, regex };
}

/** A line that a pattern found, who said it and what its named groups hold. */
export type Found = {
  /** -1 in a log that is no rank's and lies on no rank's node. */
  readonly rank: number;
  readonly role: 'head' | 'worker';
  readonly node: string;
  readonly line: LogLine;
  /** The rank in whose log it stands, where that is another one: over Ray the head's log has its workers' lines. */
  readonly log?: { readonly rank: number; readonly node: string };
  /** Name and kind of the log where it is no rank's: a client's, a launcher's, a kernel's; `node` is then whose it is, else the log's name. */
  readonly side?: { readonly name: string; readonly kind: LogKind };
  readonly message: string;
  /** The rank's stage when the line came. */
  readonly stage: Stage;
  readonly groups: Readonly<Record<string, string | undefined>>;
};

/** One attempt as a signature sees it. */
export type View = {
  readonly evidence: Evidence;
  /** Lines of all ranks in this form, earliest first. The pattern must be one of the signature's own. */
  find(form: Pattern): readonly Found[];
  /** The stage all ranks have stood in beyond the engine's limit, or undefined. */
  readonly stalled: Stage | undefined;
  /** Every log there is: the ranks' by rank, then the others. */
  readonly logs: readonly LogView[];
  /** Whether the head serves and nothing ended: then most error lines are noise. */
  readonly serves: boolean;
  /**
   * How a node's rank was started, as one line: the command that was used or given with --facts, else what the engine
   * printed of its own arguments ("non-default args: {…}", "server_args=ServerArgs(…)"). Empty where nothing tells.
   */
  command(node: string): string;
  /** A variable of a rank's environment: given to it, given with --facts, or printed in its log as NAME=value. */
  env(node: string, name: string): string | undefined;
  /** Version of something on a node (`driver`, `kernel`, `vllm`, `torch`, `nccl`, `ray` …) where facts or the log tell. */
  version(node: string, what: string): string | undefined;
};

/** One log as a whole. */
export type LogView = {
  readonly name: string;
  /** The node it belongs to; the log's name where it is none's. */
  readonly node: string;
  readonly kind: LogKind;
  readonly role: 'head' | 'worker' | undefined;
  /** -1 where it is no rank's. */
  readonly rank: number;
  /** How far the rank came. */
  readonly stage: Stage;
  readonly lines: number;
  /** The last line that is not empty. */
  readonly last: LogLine | undefined;
  /** Seconds between this log's last line and the last line of all logs; 0 where lines carry no time. */
  readonly silentSeconds: number;
  /** Exit code of the rank, where it ended and the code is known. */
  readonly exit: number | undefined;
};

/** What a signature says when it recognises its cause. */
export type Match = {
  /** Slug of docs/causes.md, or `unknown` where only the symptom is certain. */
  readonly cause: string;
  /** With cause `unknown`: the family, where that much is certain. */
  readonly family?: Family;
  /** Node at fault; undefined where it is none of them, or cannot be told. */
  readonly node: string | undefined;
  /** Where the fault lies when it is no single node. Left out: `node`, else the cause's own place. */
  readonly atFault?: 'both' | 'launcher' | 'network' | 'client' | 'none';
  /** Proof, the telling line first: the finding takes its time and stage. Empty for a stall without a line. */
  readonly shown: readonly Found[];
  readonly title: string;
  readonly why: string;
  readonly advice: readonly string[];
  readonly values?: Readonly<Record<string, string>>;
  /** 0 to 1; under 0.5 it is not told as the cause. */
  readonly confidence: number;
  /**
   * 1: a symptom that many causes share; 2: this cause in most cases; 3: the text names the cause; 4: the driver's own
   * word of the hardware, beside what follows from it.
   */
  readonly specificity: 1 | 2 | 3 | 4;
  /** Other causes that the same lines would fit. */
  readonly alternatives?: readonly { readonly cause: string; readonly confidence: number }[];
};

/** Recognises one way to fail. */
export type Signature = {
  readonly name: string;
  /** Causes that it may name. */
  readonly causes: readonly string[];
  /** Engine version and date of the lines it was made for. */
  readonly seenOn: string;
  readonly source: string;
  readonly patterns: readonly Pattern[];
  /**
   * It speaks of a service that is up: families K, L and M. Others are not asked while all ranks serve and no line
   * says that one does not go on.
   */
  readonly whileServing?: true;
  /** For docs/failures.md: a line or two as they look, with made-up names. Left out: the literals of its patterns. */
  readonly looks?: readonly string[];
  /** For docs/failures.md: what ends it, one or two sentences. Left out: the remedies for its causes. */
  readonly cure?: string;
  match(view: View): Match | undefined;
};
