import type { Evidence, LogLine } from '../../domain/evidence.ts';
import type { Stage } from '../../domain/finding.ts';

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
  readonly rank: number;
  readonly role: 'head' | 'worker';
  readonly node: string;
  readonly line: LogLine;
  /** The rank in whose log it stands, where that is another one: over Ray the head's log has its workers' lines. */
  readonly log?: { readonly rank: number; readonly node: string };
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
};

/** What a signature says when it recognises its cause. */
export type Match = {
  /** Slug of docs/causes.md, or `unknown` where only the symptom is certain. */
  readonly cause: string;
  /** Node at fault; undefined where it is none of them, or cannot be told. */
  readonly node: string | undefined;
  /** Proof, the telling line first: the finding takes its time and stage. Empty for a stall without a line. */
  readonly shown: readonly Found[];
  readonly title: string;
  readonly why: string;
  readonly advice: readonly string[];
  readonly values?: Readonly<Record<string, string>>;
  /** 0 to 1; under 0.5 it is not told as the cause. */
  readonly confidence: number;
  /** 1: a symptom that many causes share; 2: this cause in most cases; 3: the text names the cause. */
  readonly specificity: 1 | 2 | 3;
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
  match(view: View): Match | undefined;
};
