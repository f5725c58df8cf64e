import type { Software } from '../../domain/recipe.ts';
import type { Architecture } from '../../knowledge/models/architecture.ts';
import type { FitSettings } from './input.ts';

/** How further tokens are proposed: by the model's own block, by a drafter beside it, or not at all. */
export type Draft = {
  readonly tokens: number;
  readonly ownBlock: boolean;
  /** Layers of a drafter that keep keys and values. */
  readonly layers: number;
  readonly bytes: number;
  readonly rule: string | undefined;
  readonly known: boolean;
};

const NO_DRAFT: Draft = { tokens: 0, ownBlock: false, layers: 0, bytes: 0, rule: undefined, known: true };

/**
 * Speculation's share. `mtp`, `nextn` and the `deepseek_mtp` of older builds use the block in the model's own files;
 * other methods load a drafter, whose size is `draftBytes` and whose layers are told from it: each takes about 13.5
 * times the square of the model's width, after a joining projection of five (DFlash).
 */
export function draftOf(settings: FitSettings, engine: Software, model: Architecture | undefined): Draft {
  const { speculative, draftBytes } = settings;
  if (speculative === undefined) return { ...NO_DRAFT, bytes: draftBytes ?? 0 };
  const { method, tokens } = speculative;
  const hidden = model?.hidden ?? 4096;
  // SGLang's EAGLE without a drafter of its own runs the block that DeepSeek and its like bring along.
  const own =
    /mtp|nextn/i.test(method) ||
    (engine === 'sglang' && /^eagle$/i.test(method) && (model?.mtpLayers ?? 0) > 0);
  const mtp = own && draftBytes === undefined;
  if (mtp) {
    const layers = model?.mtpLayers ?? 0;
    return {
      tokens,
      ownBlock: true,
      layers: Math.max(1, layers),
      bytes: 0,
      known: layers > 0,
      rule:
        layers > 0
          ? `${method} with ${tokens} tokens loads the model's own block for further tokens`
          : `${method} uses a block that config.json does not name; its size is not counted`,
    };
  }
  if (/ngram|suffix|lookup/i.test(method))
    return { ...NO_DRAFT, tokens, rule: `${method} proposes tokens without weights of its own` };
  const known = /eagle|dflash|dspark|draft|medusa/i.test(method);
  const layers =
    draftBytes === undefined
      ? 1
      : Math.max(1, Math.min(64, Math.round((draftBytes / 2 - 5 * hidden ** 2) / (13.5 * hidden ** 2))));
  const size = draftBytes === undefined ? 'of unknown size' : `of its own file's size on every rank`;
  return {
    tokens,
    ownBlock: false,
    layers,
    bytes: draftBytes ?? 0,
    known: known && draftBytes !== undefined,
    rule: `${method}${known ? '' : ', a method not known here,'} with ${tokens} tokens loads a drafter ${size}, about ${layers} layers by that`,
  };
}
