import type { z } from 'zod';
import type { Finding } from '../../domain/finding.ts';
import type { LeftOut } from './short.ts';
import type { finding } from './tools/shapes.ts';

const MOST_QUOTES = 4;
const LONGEST_QUOTE = 300;

/** A finding as an answer shows it. */
export function findingOf(
  found: Finding & { readonly attempt?: number },
  out: LeftOut,
): z.input<typeof finding> {
  return {
    ...(found.attempt === undefined ? {} : { attempt: found.attempt }),
    cause: found.cause,
    ...(found.node === undefined ? {} : { node: found.node }),
    ...(found.stage === undefined ? {} : { stage: found.stage }),
    title: found.title,
    why: found.why,
    sure: found.confidence,
    quotes: out
      .first(found.quotes, MOST_QUOTES, 'quotes', 'evidence shows their surroundings')
      .map(
        ({ node, rank, line, text }) => `${node} rank ${rank} line ${line}: ${text.slice(0, LONGEST_QUOTE)}`,
      ),
    consequences: out.first(found.consequences, 6, 'consequences', 'they followed from the cause').slice(),
    advice: out.first(found.advice, 6, 'pieces of advice', 'follow these first').slice(),
  };
}
