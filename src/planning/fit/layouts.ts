import { plural } from '../../domain/units.ts';
import { divisionFaults } from './divides.ts';
import type { FitInput, FitLayout } from './input.ts';

/** How many times the nodes, at most, a layout is looked for on. */
const TIMES = [2, 3, 4, 6, 8, 16];

/**
 * Other layouts that the model's heads, blocks and experts divide by, nearest first: the same ranks shared otherwise,
 * experts dealt out, fewer ranks where these do not divide, then more nodes of the same kind.
 */
export function otherLayouts({ layout, engine, model, settings }: FitInput): readonly FitLayout[] {
  const { nodes, tensor, pipeline, expert } = layout;
  const divides = (to: FitLayout): boolean =>
    divisionFaults(to, engine, model.architecture, model.scheme, settings.dcp).length === 0;
  const dealt = (to: FitLayout): readonly FitLayout[] =>
    expert > 1
      ? [
          { ...to, expert: to.tensor },
          { ...to, expert: 1 },
        ]
      : model.architecture?.experts === undefined
        ? [to]
        : [to, { ...to, expert: to.tensor }];
  const split = (ranks: number, on: number): readonly FitLayout[] =>
    factors(ranks)
      .toReversed()
      .map((t) => ({ ...layout, nodes: on, tensor: t, pipeline: ranks / t }));
  const ranks = tensor * pipeline;
  const fewer = divides(layout)
    ? []
    : Array.from({ length: tensor - 1 }, (_, less) => ({ ...layout, tensor: tensor - 1 - less }));
  const options = [
    ...split(ranks, nodes),
    ...fewer,
    ...TIMES.flatMap((times) => [
      { ...layout, nodes: nodes * times, tensor: tensor * times },
      ...factors(times)
        .toReversed()
        .slice(1)
        .map((part) => ({
          ...layout,
          nodes: nodes * times,
          tensor: tensor * part,
          pipeline: (pipeline * times) / part,
        })),
    ]),
  ].flatMap(dealt);
  const seen = new Set([wordsOf(layout)]);
  return options.filter((to) => {
    const words = wordsOf(to);
    if (seen.has(words) || !divides(to)) return false;
    seen.add(words);
    return true;
  });
}

/** A layout as it is told; experts where they are dealt out otherwise than in `from`. */
export function layoutWords(to: FitLayout, from: FitLayout): string {
  return (
    `${plural(to.nodes, 'node')}, tensor ${to.tensor}, pipeline ${to.pipeline}` +
    (to.expert === from.expert ? '' : `, expert ${to.expert}`)
  );
}

function wordsOf({ nodes, tensor, pipeline, expert }: FitLayout): string {
  return [nodes, tensor, pipeline, expert].join(' ');
}

function factors(count: number): readonly number[] {
  return Array.from({ length: count }, (_, less) => less + 1).filter((part) => count % part === 0);
}
