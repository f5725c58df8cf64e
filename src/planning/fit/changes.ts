import type { FitChange, Verdict } from '../../domain/fit.ts';
import { gib, thousands } from '../../domain/units.ts';
import { bytesPer, type Format, LINEAR_KINDS, mainFormat, titleOf } from '../../knowledge/models/scheme.ts';
import { evaluate } from './evaluate.ts';
import type { FitInput, FitLayout } from './input.ts';
import { layoutWords, otherLayouts } from './layouts.ts';

const CONTEXT_STEP = 1024;
/** Formats in order of size, that a smaller release of a model is usually made in. */
const SMALLER: readonly Format[] = [
  { name: 'fp8-block' },
  { name: 'nvfp4' },
  { name: 'int', bits: 4, group: 128 },
];

/**
 * Single changes that make the launch fit, each found by asking the judgement again. One that only gets as far as
 * `may boot` is told where nothing better is to be had of its kind and the launch as it stands does not fit.
 */
export function changesFor(input: FitInput): readonly FitChange[] {
  const now = evaluate(input).verdict;
  const better = (verdict: Verdict): boolean =>
    verdict === 'fits' || (verdict === 'may boot' && now === 'does not fit');
  const alone = [
    ...contextChange(input, now),
    ...fractionChange(input, better),
    ...sequencesChange(input, better),
    ...cacheChange(input, better),
    ...layoutChange(input, better),
    ...quantizationChange(input, better),
  ];
  return alone.length > 0 || now !== 'does not fit' ? alone : withFraction(input, better);
}

/** Where nothing does alone: the largest fraction that a start lets pass, and one change more beside it. */
function withFraction(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  const now = evaluate(input).numbers.assumed.fraction;
  const at = (fraction: number): FitInput => ({ ...input, settings: { ...input.settings, fraction } });
  const starts = (fraction: number): boolean =>
    evaluate(at(fraction)).checks.every(
      ({ name, marginBytes, errorBytes }) => name !== 'start' || marginBytes >= errorBytes,
    );
  if (input.engine !== 'vllm' || starts(now)) return [];
  const fraction = Array.from({ length: 90 }, (_, less) => (95 - less) / 100).find(
    (one) => one < now && starts(one),
  );
  if (fraction === undefined) return [];
  const other = at(fraction);
  return [
    ...contextChange(other, 'does not fit'),
    ...sequencesChange(other, better),
    ...layoutChange(other, better),
    ...quantizationChange(other, better),
  ].map(({ change, to, verdict, why }) => ({
    change: 'together',
    to: `fraction ${fraction}, ${change === 'layout' ? to : `${change} ${to}`}`,
    verdict,
    why: `${why}; a start finds no larger share free`,
  }));
}

function contextChange(input: FitInput, now: Verdict): readonly FitChange[] {
  const { assumed } = evaluate(input).numbers;
  const wanted = assumed.context;
  if (wanted === undefined) return [];
  const most = Math.min(wanted, input.model.architecture?.maxTokens ?? wanted);
  const verdicts: readonly Verdict[] = now === 'does not fit' ? ['fits', 'may boot'] : ['fits'];
  for (const verdict of verdicts) {
    const to = largestContext(input, most, verdict);
    if (to === undefined || to === wanted) continue;
    const own = to === input.model.architecture?.maxTokens;
    return [
      {
        change: 'context',
        to,
        verdict,
        why: own
          ? `${thousands(to)} tokens is the model's own limit`
          : `${thousands(to)} tokens is the largest context for which there is room`,
      },
    ];
  }
  return [];
}

/** The largest context up to `most` with at least this verdict, in whole steps; less memory is needed for less. */
function largestContext(input: FitInput, most: number, verdict: Verdict): number | undefined {
  const holds = (context: number): boolean => {
    const found = evaluate({ ...input, context }).verdict;
    return found === 'fits' || found === verdict;
  };
  if (holds(most)) return most;
  let low = 0;
  let high = Math.ceil(most / CONTEXT_STEP);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle * CONTEXT_STEP)) low = middle;
    else high = middle;
  }
  return low === 0 ? undefined : low * CONTEXT_STEP;
}

function fractionChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  if (input.memory.totalBytes === undefined || input.settings.kvCacheBytes !== undefined) return [];
  const now = evaluate(input).numbers.assumed.fraction;
  // Nearest first, so that no more is changed than has to be.
  const tries = Array.from({ length: 93 }, (_, index) => (index + 5) / 100)
    .filter((fraction) => Math.abs(fraction - now) >= 0.005)
    .toSorted((a, b) => Math.abs(a - now) - Math.abs(b - now));
  const ask = (to: number): Verdict =>
    evaluate({ ...input, settings: { ...input.settings, fraction: to } }).verdict;
  const to =
    tries.find((fraction) => ask(fraction) === 'fits') ?? tries.find((fraction) => better(ask(fraction)));
  if (to === undefined) return [];
  return [
    {
      change: 'fraction',
      to,
      verdict: ask(to),
      why: to > now ? 'more of the memory for the engine' : 'more of the memory left free',
    },
  ];
}

/** The most sequences that fit, else that may boot where that is better; fewer never take more. */
function sequencesChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  const now = evaluate(input).numbers.assumed.sequences;
  for (const verdict of ['fits', 'may boot'] as const) {
    if (!better(verdict)) continue;
    const holds = (sequences: number): boolean => {
      const found = evaluate({ ...input, sequences }).verdict;
      return found === 'fits' || found === verdict;
    };
    if (now <= 1 || !holds(1)) continue;
    let low = 1;
    let high = now;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (holds(middle)) low = middle;
      else high = middle;
    }
    return [{ change: 'sequences', to: low, verdict, why: 'fewer sequences at once take less' }];
  }
  return [];
}

function cacheChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  if (/fp8|fp4|e4m3|e5m2/.test(input.settings.kvCacheDtype ?? '')) return [];
  const { verdict } = evaluate({ ...input, settings: { ...input.settings, kvCacheDtype: 'fp8' } });
  return better(verdict)
    ? [{ change: 'kvCacheDtype', to: 'fp8', verdict, why: 'a cache of FP8 holds twice as many tokens' }]
    : [];
}

/** The nearest layout that does: the same ranks shared otherwise, or more nodes. */
function layoutChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  let found: { readonly to: FitLayout; readonly verdict: Verdict } | undefined;
  for (const to of otherLayouts(input)) {
    const { verdict } = evaluate({ ...input, layout: to, nodeNames: undefined });
    if (found === undefined && better(verdict)) found = { to, verdict };
    if (verdict !== 'fits') continue;
    found = { to, verdict };
    break;
  }
  if (found === undefined) return [];
  return [
    {
      change: 'layout',
      to: layoutWords(found.to, input.layout),
      verdict: found.verdict,
      why: 'the weights are shared by more ranks, or shared otherwise',
    },
  ];
}

/** What a release in a smaller format would make of it, by the ratio of bytes per parameter. */
function quantizationChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  const { model } = input;
  // Of what is not known how small it is nobody can say how much smaller it would be.
  if (model.scheme.unheard === true) return [];
  const now = mainFormat(model.scheme);
  const size = now === undefined ? (model.architecture?.valueBytes ?? 2) : bytesPer(now);
  for (const format of SMALLER) {
    const ratio = bytesPer(format) / size;
    if (ratio > 0.9) continue;
    const smaller = {
      ...model,
      error: Math.max(model.error, 0.06),
      scheme: {
        ...model.scheme,
        repacked: format.name === 'int',
        formats: Object.fromEntries(LINEAR_KINDS.map((kind) => [kind, [{ format, share: 1 }]])),
      },
      groups: model.groups.map((group) =>
        LINEAR_KINDS.includes(group.kind) ? { ...group, bytes: group.bytes * ratio } : group,
      ),
    };
    const { weightsBytes: _, ...settings } = input.settings;
    const found = evaluate({ ...input, model: smaller, settings });
    const weights = Math.max(0, ...found.stages.map(({ numbers }) => numbers.weightsBytes ?? 0));
    if (better(found.verdict))
      return [
        {
          change: 'quantization',
          to: titleOf([format]),
          verdict: found.verdict,
          why: `weights of about ${gib(weights)} per rank`,
        },
      ];
  }
  return [];
}
