import type { FitCheck, Verdict } from '../../domain/fit.ts';
import { gib, thousands } from '../../domain/units.ts';
import { divisionFaults } from './divides.ts';
import type { FitInput } from './input.ts';
import { type Numbers, numbersOf, type StageNumbers } from './rank-numbers.ts';
import { sglangChecks } from './sglang-checks.ts';
import { vllmChecks } from './vllm-checks.ts';

/** What one stage's ranks end up with: undefined where it is not known. */
export type StageResult = {
  readonly numbers: StageNumbers;
  readonly kvBytes: number | undefined;
  readonly peakBytes: number | undefined;
  readonly poolTokens: number | undefined;
  readonly blockTokens: number | undefined;
  readonly maxConcurrency: number | undefined;
};

export type Evaluation = {
  readonly verdict: Verdict;
  readonly why: string;
  readonly checks: readonly FitCheck[];
  readonly stages: readonly StageResult[];
  readonly numbers: Numbers;
  readonly startCheck: { readonly needsBytes: number | undefined; readonly hasBytes: number | undefined };
};

/** What an engine's own rules add to the numbers. */
export type EngineView = {
  readonly checks: readonly FitCheck[];
  readonly stages: readonly StageResult[];
  readonly startCheck: Evaluation['startCheck'];
  /** Something that every check would need is not known: why. */
  readonly missing: string | undefined;
};

/** The whole judgement but for the changes: cheap and pure, so that changes are found by asking again. */
export function evaluate(input: FitInput): Evaluation {
  const numbers = numbersOf(input);
  const { model } = input;
  const view = input.engine === 'vllm' ? vllmChecks(input, numbers) : sglangChecks(input, numbers);
  const { dcp } = input.settings;
  const faults = divisionFaults(input.layout, input.engine, model.architecture, model.scheme, dcp);
  const checks: readonly FitCheck[] = [
    ...faults.map((what): FitCheck => ({ name: 'layout', what, marginBytes: -1, errorBytes: 0 })),
    ...limitCheck(input, numbers),
    ...view.checks,
  ];
  return {
    ...judge(checks, view.missing),
    checks,
    stages: view.stages,
    numbers,
    startCheck: view.startCheck,
  };
}

/** A context past the model's own limit is refused unless its rotary angles are stretched by other flags. */
function limitCheck({ model }: FitInput, { assumed }: Numbers): readonly FitCheck[] {
  const most = model.architecture?.maxTokens;
  if (most === undefined || assumed.context === undefined || assumed.context <= most) return [];
  return [
    {
      name: 'layout',
      what: `a context of ${thousands(assumed.context)} is past the model's own limit of ${thousands(most)}`,
      marginBytes: 0,
      errorBytes: 1,
    },
  ];
}

/** A whole bar past the line does not fit, a whole bar this side of it fits, across it may boot. */
function judge(
  checks: readonly FitCheck[],
  missing: string | undefined,
): { readonly verdict: Verdict; readonly why: string } {
  const by = (left: FitCheck, right: FitCheck): number =>
    left.marginBytes - left.errorBytes - (right.marginBytes - right.errorBytes);
  const failed = checks.filter(({ marginBytes, errorBytes }) => marginBytes + errorBytes < 0).toSorted(by)[0];
  if (failed !== undefined) return { verdict: 'does not fit', why: sentence(failed) };
  if (missing !== undefined) return { verdict: 'unknown', why: missing };
  const unsure = checks.filter(({ marginBytes, errorBytes }) => marginBytes - errorBytes < 0).toSorted(by)[0];
  if (unsure !== undefined) return { verdict: 'may boot', why: sentence(unsure) };
  const least = checks.toSorted(by)[0];
  return { verdict: 'fits', why: least === undefined ? 'nothing stands against it' : sentence(least) };
}

function sentence({ what, marginBytes, errorBytes, name }: FitCheck): string {
  if (name === 'layout') return what;
  const by = marginBytes < 0 ? `${gib(-marginBytes)} short` : `${gib(marginBytes)} to spare`;
  return `${what}: ${by}, give or take ${gib(errorBytes)}`;
}
