import { ENGINES } from '../domain/recipe.ts';
import { engines } from '../knowledge/engines/index.ts';
import { START_LITERALS } from '../knowledge/engines/log-line.ts';
import { consequences } from '../knowledge/signatures/consequences.ts';
import { signatures } from '../knowledge/signatures/index.ts';
import type { Pattern } from '../knowledge/signatures/signature.ts';
import { FATAL, WEIGHTY } from '../knowledge/signatures/telling.ts';
import { AMBIENT } from './ambient.ts';
import { type LiteralSet, literalSet } from './literal-set.ts';
import { requiredLiterals } from './required-literals.ts';
import { USER_LITERALS } from './user-words.ts';

/** What a literal stands for: forms of lines, a landmark, a weight, an end, a user's words. */
type Meaning = {
  readonly forms: Pattern[];
  landmark: boolean;
  weighty: boolean;
  fatal: boolean;
  user: boolean;
  start: boolean;
};

type Net = {
  readonly literals: readonly string[];
  readonly set: LiteralSet;
  readonly meanings: readonly Meaning[];
  /** Landmarks of engines have literals each; where one has none, every line has to be asked. */
  readonly everyLine: boolean;
};
let net: Net | undefined;

/** All literals of all patterns, landmarks and weights as one automaton; built at the first use. */
export function theNet(): Net {
  if (net !== undefined) return net;
  const byLiteral = new Map<string, Meaning>();
  const meaningOf = (literal: string): Meaning => {
    const meaning = byLiteral.get(literal) ?? {
      forms: [],
      landmark: false,
      weighty: false,
      fatal: false,
      user: false,
      start: false,
    };
    byLiteral.set(literal, meaning);
    return meaning;
  };
  const forms = new Set([
    ...signatures.flatMap((signature) => signature.patterns),
    ...consequences.map((consequence) => consequence.form),
    ...AMBIENT,
  ]);
  for (const form of forms) for (const literal of form.literals) meaningOf(literal).forms.push(form);
  const marks = ENGINES.flatMap((engine) => engines[engine].landmarks).map(requiredLiterals);
  for (const literal of marks.flatMap((literals) => literals ?? [])) meaningOf(literal).landmark = true;
  for (const literal of WEIGHTY) meaningOf(literal).weighty = true;
  for (const literal of FATAL) meaningOf(literal).fatal = true;
  for (const literal of USER_LITERALS) meaningOf(literal).user = true;
  for (const literal of START_LITERALS) meaningOf(literal).start = true;
  const literals = [...byLiteral.keys()];
  net = {
    literals,
    set: literalSet(literals),
    meanings: [...byLiteral.values()],
    everyLine: marks.includes(undefined),
  };
  return net;
}

/** All literals that are looked for, in one pass: what a bench lets other tools look for. */
export function netLiterals(): readonly string[] {
  return theNet().literals;
}
