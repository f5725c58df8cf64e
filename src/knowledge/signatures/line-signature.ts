import { STAGES } from '../../domain/finding.ts';
import { list } from '../../domain/units.ts';
import { nodesOf } from './scene.ts';
import type { Found, Match, Pattern, Signature, View } from './signature.ts';

/** Where a fault lies: a node by name, or a place that is no node. */
export type Where = Pick<Match, 'node' | 'atFault'>;

/** A signature whose lines name the cause by themselves, with what confirms and what contradicts them. */
export type LineSignature = {
  readonly name: string;
  readonly cause: string;
  readonly seenOn: string;
  readonly source: string;
  /** Each is proof. */
  readonly forms: readonly Pattern[];
  /** Quoted beside the proof where the same log has them. */
  readonly also?: readonly Pattern[];
  /** The same log must have one of these too. */
  readonly needs?: readonly Pattern[];
  /** Another cause where any log has one of these. */
  readonly unless?: readonly Pattern[];
  /** Lines that the engine itself calls a warning or information count too. */
  readonly evenWarnings?: true;
  /** It may go on for a while and yet be the cause: lines after which the rank came further count too. */
  readonly slow?: true;
  /** Lines that are meant; all if left out. */
  readonly counts?: (found: Found, view: View) => boolean;
  /** Where the fault lies; `whoSaid` if left out. */
  readonly at?: (first: Found, all: readonly Found[], view: View) => Where;
  /** The cause as one sentence; `where` is the node, or the nodes. */
  readonly title: (found: Found, where: string) => string;
  readonly why: string | ((found: Found, view: View) => string);
  readonly advice: (found: Found, where: string, view: View) => readonly string[];
  readonly values?: (found: Found, view: View) => Readonly<Record<string, string>>;
  readonly confidence: number | ((found: Found, view: View) => number);
  readonly specificity: Match['specificity'];
  readonly alternatives?: Match['alternatives'];
  readonly whileServing?: true;
  readonly looks?: readonly string[];
  readonly cure?: string;
};

const SHOWN = 4;
/** vLLM's own level of what does not stop it. */
const MILD = /(?:^|\) ?)(?:DEBUG|INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d /;

/** Makes the signature; named groups of the line become the finding's values. */
export function lineSignature(plain: LineSignature): Signature {
  const { name, cause, seenOn, source, forms, also = [], needs = [], unless = [] } = plain;
  return {
    name,
    causes: [cause],
    seenOn,
    source,
    patterns: [...forms, ...also, ...needs, ...unless],
    ...(plain.whileServing === undefined ? {} : { whileServing: plain.whileServing }),
    ...(plain.looks === undefined ? {} : { looks: plain.looks }),
    ...(plain.cure === undefined ? {} : { cure: plain.cure }),
    match(view) {
      const all = inOrder(forms, view).filter(
        (found) =>
          (plain.evenWarnings === true || !MILD.test(found.line.text)) &&
          (plain.slow === true || !movedOn(found, view)) &&
          (plain.counts?.(found, view) ?? true),
      );
      const first = all[0];
      if (first === undefined || inOrder(unless, view).length > 0) return undefined;
      const beside = inOrder([...needs, ...also], view).filter((found) => sameLog(found, first));
      if (needs.length > 0 && !inOrder(needs, view).some((found) => sameLog(found, first))) return undefined;
      const place = (plain.at ?? whoSaid)(first, all, view);
      const where = wordsFor(place, first, view);
      return {
        cause,
        ...place,
        shown: [...shownOf(all, place), ...beside].slice(0, SHOWN),
        title: plain.title(first, where),
        why: typeof plain.why === 'string' ? plain.why : plain.why(first, view),
        advice: plain.advice(first, where, view),
        values: { ...valuesOf(first), ...plain.values?.(first, view) },
        confidence: typeof plain.confidence === 'number' ? plain.confidence : plain.confidence(first, view),
        specificity: plain.specificity,
        ...(plain.alternatives === undefined ? {} : { alternatives: plain.alternatives }),
      };
    },
  };
}

/** Lines of all these forms, earliest first, each once. */
export function inOrder(forms: readonly Pattern[], { find }: View): readonly Found[] {
  const all = forms.flatMap((form) => find(form));
  return all
    .filter((found, index) => all.findIndex((other) => other.line === found.line) === index)
    .toSorted((a, b) => a.line.at - b.line.at || a.line.line - b.line.line);
}

/** Whether the rank came to a later stage after it said this: then that did not stop it. */
export function movedOn({ rank, side, log, stage }: Found, { evidence }: View): boolean {
  if (side !== undefined || log !== undefined) return false;
  const now = evidence.ranks.find((one) => one.rank === rank)?.stage ?? stage;
  return STAGES.indexOf(now) > STAGES.indexOf(stage);
}

/** Whether both lines stand in one log. */
export function sameLog(a: Found, b: Found): boolean {
  return a.side?.name === b.side?.name && (a.log?.rank ?? a.rank) === (b.log?.rank ?? b.rank);
}

/** The node that printed the lines: both where every node did, and the log's own place where it is no node's. */
export function whoSaid(first: Found, all: readonly Found[], view: View): Where {
  const nodes = nodesOf(view.evidence);
  const said = new Set(all.map((found) => found.node));
  if (nodes.length > 1 && nodes.every((node) => said.has(node))) return { node: undefined, atFault: 'both' };
  if (nodes.includes(first.node)) return { node: first.node };
  const ofRank = all.find((found) => nodes.includes(found.node));
  return ofRank === undefined ? besideRanks(first, view) : { node: ofRank.node };
}

/**
 * A log beside the ranks' that lies on no node of theirs: a client speaks of the head, a launcher of the node that its
 * line names, else of itself.
 */
function besideRanks({ side, message }: Found, { evidence }: View): Where {
  const nodes = nodesOf(evidence);
  if (side?.kind === 'client' || side?.kind === 'kernel' || side?.kind === 'daemon')
    return { node: nodes[0] ?? 'head' };
  const named = evidence.ranks.filter(({ node, role }) =>
    message.split(/[^\w.-]+/).some((word) => word === node || (evidence.ranks.length < 3 && word === role)),
  );
  if (named.length === 1) return { node: named[0]?.node };
  return nodes.length === 1 ? { node: nodes[0] } : { node: undefined, atFault: 'launcher' };
}

/** Always there, whoever printed it. */
export function always(atFault: NonNullable<Match['atFault']>): () => Where {
  return () => ({ node: undefined, atFault });
}

/** The head, whoever printed it. */
export function theHead(first: Found, _all: readonly Found[], { evidence }: View): Where {
  return {
    node: evidence.ranks.find((rank) => rank.role === 'head')?.node ?? (first.rank < 0 ? 'head' : first.node),
  };
}

function wordsFor({ node, atFault }: Where, first: Found, { evidence }: View): string {
  if (node !== undefined) return node;
  return atFault === 'both' ? list(nodesOf(evidence)) : first.node;
}

/** Of a cause on both sides a line each is shown; else those of the first log. */
function shownOf(all: readonly Found[], { atFault }: Where): readonly Found[] {
  const [first] = all;
  if (first === undefined) return [];
  if (atFault === 'both')
    return all.filter((found, index) => all.findIndex((other) => other.node === found.node) === index);
  return all.filter((found) => sameLog(found, first)).slice(0, SHOWN - 1);
}

function valuesOf(found: Found): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(found.groups).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
