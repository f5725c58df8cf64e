import { diagnose } from '../../diagnosis/diagnose.ts';
import type { Evidence } from '../../domain/evidence.ts';
import type { Finding } from '../../domain/finding.ts';
import type { Verified } from '../verify.ts';

/** Causes that an answer shows while no log has a word of them. */
const SHOWN: ReadonlySet<string> = new Set([
  'reasoning-parser-mismatch',
  'tool-parser-mismatch',
  'tool-parser-not-enabled',
]);

/** What an answer shows, and the attempt's evidence with that answer. */
export type Misread = { readonly evidence: Evidence; readonly finding: Finding };

/** A parser that does not fit the model, by what the model answered to our own questions; with those as a log beside the ranks'. */
export function misreadAnswer(evidence: Evidence, { said }: Verified): Misread | undefined {
  if (said.length === 0) return undefined;
  const { now: at } = evidence;
  const lines = said.map((text, index) => ({ line: index + 1, at, text }));
  const head = evidence.ranks.find(({ role }) => role === 'head');
  const asked = { name: 'answers to the check', kind: 'client', node: head?.node, lines } as const;
  const seen: Evidence = { ...evidence, side: [...(evidence.side ?? []), asked] };
  const finding = diagnose(seen, { final: true });
  return SHOWN.has(finding.cause) ? { evidence: seen, finding } : undefined;
}
