import type { FitChange, Verdict } from '../../domain/fit.ts';
import { gib, thousands } from '../../domain/units.ts';
import { bytesPer, type Format, LINEAR_KINDS, mainFormat, titleOf } from '../../knowledge/models/scheme.ts';
import { divisionFaults } from './divides.ts';
import { evaluate } from './evaluate.ts';
import type { FitInput } from './input.ts';

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
  return [
    ...contextChange(input, now),
    ...fractionChange(input, better),
    ...sequencesChange(input, better),
    ...cacheChange(input, better),
    ...layoutChange(input, better),
    ...quantizationChange(input, better),
  ];
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

function sequencesChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  const now = evaluate(input).numbers.assumed.sequences;
  for (let to = 2 ** Math.floor(Math.log2(Math.max(1, now - 1))); to >= 1; to /= 2) {
    if (to >= now) continue;
    const { verdict } = evaluate({ ...input, sequences: to });
    if (better(verdict))
      return [{ change: 'sequences', to, verdict, why: 'fewer sequences at once take less' }];
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

/** More ranks of the same kind: the first size that the model's heads and blocks divide by. */
function layoutChange(input: FitInput, better: (verdict: Verdict) => boolean): readonly FitChange[] {
  const { layout, engine, model } = input;
  const perNode = Math.max(1, Math.ceil((layout.tensor * layout.pipeline) / layout.nodes));
  const options = [
    ...(layout.nodes > 1 && layout.pipeline === 1 && layout.tensor > 1
      ? [{ ...layout, tensor: perNode, pipeline: layout.nodes, expert: 1 }]
      : []),
    ...[2, 3, 4, 6, 8].map((times) => ({
      ...layout,
      nodes: layout.nodes * times,
      tensor: layout.tensor * times,
    })),
    ...[2, 3, 4, 8].map((times) => ({
      ...layout,
      nodes: layout.nodes * times,
      pipeline: layout.pipeline * times,
    })),
  ];
  const asked = options
    .filter(
      (to) => divisionFaults(to, engine, model.architecture, model.scheme, input.settings.dcp).length === 0,
    )
    .map((to) => ({ to, verdict: evaluate({ ...input, layout: to, nodeNames: undefined }).verdict }));
  const found =
    asked.find(({ verdict }) => verdict === 'fits') ?? asked.find(({ verdict }) => better(verdict));
  if (found === undefined) return [];
  const { to, verdict } = found;
  return [
    {
      change: 'layout',
      to:
        `${to.nodes} nodes, tensor ${to.tensor}, pipeline ${to.pipeline}` +
        (to.expert === layout.expert ? '' : `, expert ${to.expert}`),
      verdict,
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
