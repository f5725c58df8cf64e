import { type Format, LINEAR_KINDS, mainFormat, type Scheme, titleOf, UNQUANTISED } from './scheme.ts';
import type { TensorKind } from './weight-group.ts';

const PARTS: readonly (readonly [RegExp, readonly TensorKind[]])[] = [
  [/shared/, ['shared-expert']],
  [/(?:routed )?experts?\b/, ['experts']],
  [/lm_head/, ['head']],
  [/embed/, ['embedding']],
  [/gdn|linear attention/, ['linear-attention']],
  [/attention/, ['attention', 'key-value', 'latent-down']],
];

/**
 * A publisher's words for a checkpoint's format, such as "mxfp4 experts, rest bf16" or "int4 g32 (compressed-tensors
 * WNA16)". Undefined where they name no format. `fallback` is what "4-bit" alone means.
 */
export function schemeOfWords(
  words: string,
  fallback: Format | undefined,
): { readonly scheme: Scheme; readonly namesParts: boolean } | undefined {
  const clauses = words.toLowerCase().split(/[;,()]| \+ | \/ |:/);
  const formats: Partial<Record<TensorKind, readonly { format: Format; share: number }[]>> = {};
  const used: Format[] = [];
  let rest: Format | undefined;
  let last: Format | undefined;
  let mtp: Scheme['mtp'] = 'as-layers';
  for (const clause of clauses) {
    const format = formatIn(clause, fallback) ?? last;
    if (format === undefined) continue;
    const kinds = kindsIn(clause);
    const named = formatIn(clause, fallback) !== undefined;
    last = format;
    if (/mtp/.test(clause)) {
      if (format.name === 'bf16') mtp = 'own-type';
      continue;
    }
    if (kinds.length > 0) for (const kind of kinds) formats[kind] ??= [{ format, share: 1 }];
    else if (named || /rest|linears/.test(clause)) rest ??= format;
    if (format.name !== 'bf16') used.push(format);
  }
  if (last === undefined) return undefined;
  const namesParts = Object.keys(formats).length > 0;
  if (rest !== undefined) for (const kind of LINEAR_KINDS) formats[kind] ??= [{ format: rest, share: 1 }];
  const scheme = { ...UNQUANTISED, formats, mtp };
  return {
    scheme: {
      ...scheme,
      title: used.length === 0 ? UNQUANTISED.title : titleOf(used),
      from: used.length === 0 ? undefined : 'weight_format',
      repacked: mainFormat(scheme)?.name === 'int',
    },
    namesParts,
  };
}

function kindsIn(clause: string): readonly TensorKind[] {
  return PARTS.flatMap(([pattern, kinds]) => (pattern.test(clause) ? kinds : []));
}

function formatIn(clause: string, fallback: Format | undefined): Format | undefined {
  const group = Number(/\bg(\d+)\b/.exec(clause)?.[1] ?? 0);
  if (/nvfp4/.test(clause)) return { name: 'nvfp4' };
  if (/mxfp4|\bfp4/.test(clause)) return { name: 'mxfp4' };
  if (/mxfp8/.test(clause)) return { name: 'mxfp8' };
  if (/fp8/.test(clause)) return { name: /block/.test(clause) ? 'fp8-block' : 'fp8' };
  const bits = /\bint(\d)\b/.exec(clause)?.[1];
  if (bits !== undefined) return { name: 'int', bits: Number(bits), group };
  const bpw = /(\d+(?:\.\d+)?) bpw/.exec(clause)?.[1];
  if (bpw !== undefined) return { name: 'int', bits: Number(bpw), group: 0 };
  if (/\b4-bit/.test(clause)) return fallback ?? { name: 'int', bits: 4, group: 32 };
  if (/\bbf16|\bfp16/.test(clause)) return { name: 'bf16' };
  return /\bfp32/.test(clause) ? { name: 'fp32' } : undefined;
}
