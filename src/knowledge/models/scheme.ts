import type { TensorKind } from './weight-group.ts';

/** A way numbers are kept. Bytes per parameter count scales and zero points in (FORMULAS 2). */
export type Format =
  | { readonly name: 'fp32' | 'bf16' | 'fp8' | 'fp8-block' | 'nvfp4' | 'mxfp4' | 'mxfp8' }
  | { readonly name: 'int'; readonly bits: number; readonly group: number };

export function bytesPer(format: Format): number {
  switch (format.name) {
    case 'fp32':
      return 4;
    case 'bf16':
      return 2;
    case 'fp8':
      return 1;
    case 'fp8-block':
      return 1 + 4 / (128 * 128);
    case 'nvfp4':
      return 0.5 + 1 / 16;
    case 'mxfp4':
      return 0.5 + 1 / 32;
    case 'mxfp8':
      return 1 + 1 / 32;
    case 'int':
      // Scales of two bytes per group; zero points of the same width as the values where groups are long.
      return (
        format.bits / 8 +
        (format.group > 0 ? 2 / format.group + (format.group > 32 ? format.bits / 8 / format.group : 0) : 0)
      );
  }
}

/** Which share of each kind of tensor is kept in which format; what is not named is in the model's own type. */
export type Scheme = {
  readonly formats: Readonly<Partial<Record<TensorKind, readonly Part[]>>>;
  /** The block for further tokens, where it is kept otherwise than the layers. */
  readonly mtp: 'as-layers' | 'own-type';
  /** In a word for people: "FP8 in blocks of 128", "NVFP4". */
  readonly title: string;
  /** Where it was read; undefined for a model that is not quantised. */
  readonly from: string | undefined;
  /** Values that the engine rearranges while it loads: it may hold a second copy meanwhile. */
  readonly repacked: boolean;
  /** The checkpoint asks for an FP8 cache. */
  readonly fp8Cache: boolean;
  /** The method of quantisation is not known here: `formats` says nothing of it. */
  readonly unheard?: boolean;
};
type Part = { readonly format: Format; readonly share: number };

/** Kinds that quantisation is about; the rest stays as it is unless it is named. */
export const LINEAR_KINDS: readonly TensorKind[] = [
  'attention',
  'key-value',
  'latent-down',
  'linear-attention',
  'mamba',
  'dense',
  'shared-expert',
  'experts',
];

export const UNQUANTISED: Scheme = {
  formats: {},
  mtp: 'as-layers',
  title: 'not quantised',
  from: undefined,
  repacked: false,
  fp8Cache: false,
};

/** Mean bytes per parameter of one kind. */
export function bytesOf(scheme: Scheme, kind: TensorKind, valueBytes: number): number {
  const parts = scheme.formats[kind] ?? [];
  const covered = parts.reduce((sum, part) => sum + part.share, 0);
  const quantised = parts.reduce((sum, part) => sum + part.share * bytesPer(part.format), 0);
  return quantised + Math.max(0, 1 - covered) * valueBytes;
}

/** The format most of the routed experts, else of the dense layers, are kept in. */
export function mainFormat(scheme: Scheme): Format | undefined {
  const parts = scheme.formats.experts ?? scheme.formats.dense ?? [];
  return [...parts].sort((a, b) => b.share - a.share)[0]?.format;
}

/** Formats in words for people. */
export function titleOf(formats: readonly Format[]): string {
  const words = formats.map((format) => {
    switch (format.name) {
      case 'int':
        return `INT${format.bits}${format.group > 0 ? ` in groups of ${format.group}` : ''}`;
      case 'fp8-block':
        return 'FP8 in blocks of 128';
      default:
        return format.name.toUpperCase();
    }
  });
  return [...new Set(words)].join(' and ') || 'an unknown format';
}
