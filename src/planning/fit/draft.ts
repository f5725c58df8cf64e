import type { Software } from '../../domain/recipe.ts';
import { plural } from '../../domain/units.ts';
import type { Architecture } from '../../knowledge/models/architecture.ts';
import type { FitSettings } from './input.ts';

/** How further tokens are proposed: by the model's own block, by a drafter beside it, or not at all. */
export type Draft = {
  readonly tokens: number;
  readonly ownBlock: boolean;
  /** Layers of a drafter that keep keys and values; none in heads such as Medusa's. */
  readonly layers: number;
  /** They are shaped as the model's own, so that the engine keeps them among those. */
  readonly alike: boolean;
  /** Tokens that they keep at most; undefined for all. */
  readonly window: number | undefined;
  readonly bytes: number;
  readonly rule: string | undefined;
  /** What it may take beside `bytes`, where its size or what it is was not told. */
  readonly errorBytes: number;
};

const GIB = 2 ** 30;

const NO_DRAFT: Draft = {
  tokens: 0,
  ownBlock: false,
  layers: 0,
  alike: false,
  window: undefined,
  bytes: 0,
  rule: undefined,
  errorBytes: 0,
};
/** A block or drafter whose size was not said; and a method not known here, which may bring any. */
const UNSAID = 0.5 * GIB;
const UNHEARD = 2 * GIB;
/** DFlash2's drafters look back over so many tokens; their first version over all. */
const DFLASH2_WINDOW = 2048;
/** Layers of a drafter whose size was not said: published DFlash drafters have five to eight, EAGLE's one. */
const USUAL_LAYERS = { block: 5, other: 1 };

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
      ...NO_DRAFT,
      tokens,
      ownBlock: true,
      layers: Math.max(1, layers),
      errorBytes: layers > 0 ? 0 : UNSAID,
      rule:
        layers > 0
          ? `${method} with ${plural(tokens, 'token')} loads the model's own block for further tokens`
          : `${method} uses a block that config.json does not name; its size is not counted`,
    };
  }
  if (/ngram|suffix|lookup/i.test(method))
    return { ...NO_DRAFT, tokens, rule: `${method} proposes tokens without weights of its own` };
  const known = /eagle|dflash|dspark|draft|medusa|mlp_speculator/i.test(method);
  const headsOnly = /medusa|mlp_speculator/i.test(method);
  const byBlocks = /dflash|dspark/i.test(method);
  const usual = byBlocks ? USUAL_LAYERS.block : USUAL_LAYERS.other;
  const layers = headsOnly
    ? 0
    : draftBytes === undefined
      ? usual
      : Math.max(1, Math.min(64, Math.round((draftBytes / 2 - 5 * hidden ** 2) / (13.5 * hidden ** 2))));
  const size = draftBytes === undefined ? 'of unknown size' : `of its own file's size on every rank`;
  const told = headsOnly ? 'which keep no cache' : `about ${plural(layers, 'layer')} by that`;
  return {
    ...NO_DRAFT,
    tokens,
    layers,
    alike: /eagle/i.test(method),
    window: /dflash-?2/i.test(method) ? DFLASH2_WINDOW : undefined,
    bytes: draftBytes ?? 0,
    errorBytes: draftBytes === undefined ? (known ? UNSAID : UNHEARD) : known ? 0 : UNSAID,
    rule: `${method}${known ? '' : ', a method not known here,'} with ${plural(tokens, 'token')} loads a drafter ${size}, ${told}`,
  };
}
