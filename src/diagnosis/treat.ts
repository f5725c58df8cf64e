import type { Evidence } from '../domain/evidence.ts';
import { type Finding, STAGES, type Treatment } from '../domain/finding.ts';
import type { EngineName } from '../domain/recipe.ts';
import { remedies } from '../knowledge/remedies/index.ts';
import { REMEDY_BOUND, type RemedyInput } from '../knowledge/remedies/remedy.ts';
import { diagnose, failed } from './diagnose.ts';

/** A remedy that was applied in this run. */
export type Tried = { readonly engine: EngineName; readonly remedy: string; readonly cause: string };

/** What a remedy sees, and what was tried in this run so far. */
export type TreatInput = RemedyInput & { readonly tried: readonly Tried[] };

/**
 * The cure to try next, or undefined where none is left for this cause with this engine. Each remedy is tried once
 * per engine and cause; an unknown cause has none.
 */
export function treat(input: TreatInput): Treatment | undefined {
  const { finding, engine, tried } = input;
  if (finding.cause === 'unknown') return undefined;
  for (const remedy of remedies) {
    if (!remedy.causes.includes(finding.cause)) continue;
    const times = tried.filter(
      (one) => one.engine === engine && one.remedy === remedy.name && one.cause === finding.cause,
    ).length;
    if (times >= REMEDY_BOUND) continue;
    const edits = remedy.apply(input);
    if (edits === undefined) continue;
    return {
      remedy: remedy.name,
      cause: finding.cause,
      node: finding.node,
      title: remedy.title(input),
      cost: remedy.cost(input),
      edits,
    };
  }
  return undefined;
}

/**
 * Whether the treatment helped, by the attempt that followed it: `proved` when the ranks got past the stage of the
 * finding and its cause is not found again; `failed` when it is, on the same node; `open` until either is seen.
 */
export function proved(
  before: { readonly finding: Finding; readonly treatment: Treatment },
  evidence: Evidence,
): 'proved' | 'failed' | 'open' {
  const { finding, treatment } = before;
  if (failed(evidence)) {
    const again = diagnose(evidence, { final: evidence.after.length > 0 });
    if (again.cause === treatment.cause && again.node === finding.node) return 'failed';
  }
  const past = finding.stage === undefined ? STAGES.length : STAGES.indexOf(finding.stage);
  const quoted = new Set(finding.quotes.map((quote) => quote.rank));
  const concerned = evidence.ranks.filter(
    (rank) => quoted.size === 0 || quoted.has(rank.rank) || rank.rank === finding.rank,
  );
  const through = concerned.every((rank) => STAGES.indexOf(rank.stage) > past);
  // What was found while it served is proved by answers, which whoever asks tells.
  const serves =
    finding.stage !== 'serving' &&
    evidence.ranks.some((rank) => rank.role === 'head' && rank.stage === 'serving');
  return concerned.length > 0 && (through || serves) ? 'proved' : 'open';
}
