import type { Verdict } from '../../src/diagnosis/verdict.ts';
import { familyOf } from '../../src/knowledge/causes.ts';
import { answerTo, type CorpusCase } from './corpus.ts';

/** One case with its answer, and what is right of it. */
export type Scored = {
  readonly one: CorpusCase;
  readonly said: Verdict;
  readonly cause: boolean;
  readonly family: boolean;
  readonly node: boolean;
  /** Quoted lines that were added to the log as noise. */
  readonly noise: readonly string[];
};

export function score(cases: readonly CorpusCase[]): readonly Scored[] {
  return cases.map((one) => {
    const said = answerTo(one.texts);
    const noise = Object.values(one.noise).flat();
    return {
      one,
      said,
      cause: said.cause === one.cause,
      family: said.family === familyOf(one.cause),
      node: said.atFault === one.atFault,
      noise: (said.finding?.quotes ?? []).map(({ text }) => text).filter((text) => noise.includes(text)),
    };
  });
}

/** Sums of a set of cases, as one row of the table. */
export type Sums = {
  readonly cases: number;
  readonly cause: number;
  readonly family: number;
  readonly node: number;
  readonly unknown: number;
  /** Another cause was named. */
  readonly wrong: number;
  readonly noise: number;
};

export function sumsOf(scored: readonly Scored[]): Sums {
  const count = (fits: (one: Scored) => boolean): number => scored.filter(fits).length;
  return {
    cases: scored.length,
    cause: count(({ cause }) => cause),
    family: count(({ family }) => family),
    node: count(({ node }) => node),
    unknown: count(({ said, cause }) => said.cause === 'unknown' && !cause),
    wrong: count(({ said, cause }) => said.cause !== 'unknown' && !cause),
    noise: scored.reduce((sum, { noise }) => sum + noise.length, 0),
  };
}

/** The table of `npm run score`: one row a set, then how well confidence means what it says. */
export function scoreTable(rows: readonly (readonly [string, readonly Scored[]])[]): string {
  const lines = rows.map(([name, scored]) => {
    const sums = sumsOf(scored);
    const share = (part: number): string =>
      `${String(part).padStart(4)} ${percent(part, sums.cases).padStart(4)}`;
    return [
      name.padEnd(12),
      String(sums.cases).padStart(5),
      share(sums.cause),
      share(sums.family),
      share(sums.node),
      String(sums.unknown).padStart(7),
      String(sums.wrong).padStart(6),
      String(sums.noise).padStart(6),
    ].join('  ');
  });
  const head = 'set           cases  cause      family     node       unknown   wrong   noise';
  return [head, ...lines, '', ...calibration(rows.flatMap(([, scored]) => scored))].join('\n');
}

function calibration(scored: readonly Scored[]): readonly string[] {
  const bins = [0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01].slice(0, -1).map((from, index, all) => {
    const to = all[index + 1] ?? 1.01;
    const inside = scored.filter(({ said }) => said.confidence >= from && said.confidence < to);
    const right = inside.filter(({ cause }) => cause).length;
    const mean = inside.reduce((sum, { said }) => sum + said.confidence, 0) / Math.max(1, inside.length);
    return `${from.toFixed(1)}–${Math.min(1, to).toFixed(1)}  ${String(inside.length).padStart(4)}  said ${mean.toFixed(2)}  right ${percent(right, inside.length)}`;
  });
  const brier =
    scored.reduce((sum, { said, cause }) => sum + (said.confidence - Number(cause)) ** 2, 0) /
    Math.max(1, scored.length);
  return ['confidence  cases', ...bins, `Brier score ${brier.toFixed(3)}`];
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${Math.round((100 * part) / whole)}%`;
}
