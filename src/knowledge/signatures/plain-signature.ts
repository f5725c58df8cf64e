import type { Found, Match, Pattern, Signature } from './signature.ts';

/** A signature whose one line names the cause: the node at fault is the one that printed it. */
export type PlainSignature = {
  readonly name: string;
  readonly cause: string;
  readonly seenOn: string;
  readonly source: string;
  readonly forms: readonly Pattern[];
  readonly title: (found: Found) => string;
  readonly why: string;
  readonly advice: (found: Found) => readonly string[];
  readonly confidence: number;
  readonly specificity: Match['specificity'];
};

/** Makes the signature; the named groups of its line become the finding's values. */
export function plainSignature(plain: PlainSignature): Signature {
  const { name, cause, seenOn, source, forms: patterns } = plain;
  return {
    name,
    causes: [cause],
    seenOn,
    source,
    patterns,
    match({ find }) {
      const all = patterns.flatMap((form) => find(form)).toSorted((a, b) => a.line.at - b.line.at);
      const first = all[0];
      if (first === undefined) return undefined;
      return {
        cause,
        node: first.node,
        shown: all.filter((found) => found.rank === first.rank).slice(0, 3),
        title: plain.title(first),
        why: plain.why,
        advice: plain.advice(first),
        values: valuesOf(first),
        confidence: plain.confidence,
        specificity: plain.specificity,
      };
    },
  };
}

function valuesOf(found: Found): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(found.groups).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
