import { isObject } from '../../domain/json.ts';
import type { Architecture } from './architecture.ts';
import { fieldsOf, type Json } from './fields.ts';
import {
  bytesPer,
  type Format,
  LINEAR_KINDS,
  mainFormat,
  type Scheme,
  titleOf,
  UNQUANTISED,
} from './scheme.ts';
import { schemeOfWords } from './scheme-words.ts';
import { kindOf } from './tensor-name.ts';
import type { TensorKind } from './weight-group.ts';

/** How often each module name is listed: once per layer where a list goes layer by layer. */
type Listed = readonly (readonly [name: string, count: number])[];
type Group = { readonly format: Format; readonly targets: Listed };
type Read = {
  readonly method: string;
  readonly groups: readonly Group[];
  readonly ignored: Listed;
  readonly fp8Cache: boolean;
};

/**
 * How a model's weights are kept: by its quantization_config or hf_quant_config.json, and by a publisher's words
 * (`weight_format`), which win where they name parts and the config does not, or where the two contradict each other.
 */
export function readScheme(
  of: {
    readonly quantization: Json | undefined;
    readonly modelopt: Json | undefined;
    readonly words: string | undefined;
    readonly config: Json;
  },
  model: Architecture | undefined,
): Scheme {
  const read = of.modelopt === undefined ? undefined : readModelopt(of.modelopt);
  const other = of.quantization === undefined ? undefined : readConfig(of.quantization, of.config);
  // NVIDIA's own file goes module by module; one that names nothing leaves the say to config.json.
  const best = read !== undefined && (other === undefined || isSpecific(read)) ? read : other;
  const byConfig = best === undefined ? undefined : schemeOf(best, model);
  const byWords =
    of.words === undefined
      ? undefined
      : schemeOfWords(of.words, byConfig === undefined ? undefined : mainFormat(byConfig));
  if (byConfig === undefined)
    return (
      byWords?.scheme ??
      (Object.keys(of.quantization ?? {}).length === 0 ? UNQUANTISED : unheard(of.quantization ?? {}))
    );
  if (byWords === undefined) return byConfig;
  // A config that contradicts the words is another release's: its wish for an FP8 cache is, too.
  if (contradicts(byWords.scheme, byConfig)) return byWords.scheme;
  const vague = byWords.namesParts && best !== undefined && !isSpecific(best);
  return vague ? { ...byWords.scheme, fp8Cache: byConfig.fp8Cache } : byConfig;
}

/** Quantised by a method that is not known here: what a value takes is not known, and is not taken for two bytes. */
function unheard(quantization: Json): Scheme {
  const from = fieldsOf(quantization);
  const method = from.text('quant_method') ?? from.text('quant_type') ?? 'a method without a name';
  return {
    ...UNQUANTISED,
    title: `quantised by ${method}, which is not known here`,
    from: method,
    unheard: true,
  };
}

function isSpecific(read: Read): boolean {
  return read.ignored.length > 2 || read.groups.some((group) => group.targets.length > 1);
}

/** Less than a tenth apart in size is the same format in other words. */
function contradicts(words: Scheme, config: Scheme): boolean {
  const [a, b] = [mainFormat(words), mainFormat(config)];
  if (a === undefined || b === undefined) return a !== b;
  return Math.abs(bytesPer(a) - bytesPer(b)) > 0.1;
}

function readModelopt(file: Json): Read {
  const from = fieldsOf(fieldsOf(file).object('quantization') ?? file);
  const fp8Cache = /fp8/i.test(from.text('kv_cache_quant_algo') ?? '');
  const ignored = listed(from.list('exclude_modules') ?? from.object('exclude_modules_patterns'));
  const algo = from.text('quant_algo') ?? '';
  const layers = from.object('quantized_layers');
  const patterns = from.object('quantized_layers_patterns');
  const named = [
    ...Object.entries(layers ?? {}).map(([name, entry]): readonly [string, string, number] => [
      name,
      isObject(entry) ? (fieldsOf(entry).text('quant_algo') ?? '') : '',
      1,
    ]),
    ...Object.entries(patterns ?? {}).map(([text, count]): readonly [string, string, number] => {
      const [name = '', format = ''] = text.split(' = ');
      return [name, format, typeof count === 'number' ? count : 1];
    }),
  ];
  if (named.length > 0) {
    const formats = [...new Set(named.map(([, format]) => format))];
    return {
      method: 'modelopt',
      groups: formats.flatMap((text): readonly Group[] => {
        const format = formatOfAlgo(text);
        const targets = named
          .filter(([, other]) => other === text)
          .map(([name, , count]) => [name, count] as const);
        return format === undefined ? [] : [{ format, targets }];
      }),
      ignored,
      fp8Cache,
    };
  }
  const format = formatOfAlgo(algo);
  return {
    method: 'modelopt',
    groups: format === undefined ? [] : [{ format, targets: [['Linear', 1]] }],
    ignored,
    fp8Cache,
  };
}

function formatOfAlgo(algo: string): Format | undefined {
  if (/nvfp4|w4a16_nvfp4/i.test(algo)) return { name: 'nvfp4' };
  if (/mxfp4/i.test(algo)) return { name: 'mxfp4' };
  if (/mxfp8/i.test(algo)) return { name: 'mxfp8' };
  if (/fp8_pb|block/i.test(algo)) return { name: 'fp8-block' };
  if (/fp8/i.test(algo)) return { name: 'fp8' };
  if (/w4|int4/i.test(algo)) return { name: 'int', bits: 4, group: 128 };
  return /int8|w8/i.test(algo) ? { name: 'int', bits: 8, group: 0 } : undefined;
}

function readConfig(quantization: Json, config: Json): Read | undefined {
  const from = fieldsOf(quantization);
  const method = (from.text('quant_method') ?? from.text('quant_type') ?? '').toLowerCase();
  const ignored = listed(
    from.list('ignore') ??
      from.list('modules_to_not_convert') ??
      from.list('exclude_modules') ??
      from.object('modules_to_not_convert_suffixes') ??
      from.object('ignore_suffixes'),
  );
  const cache = from.object('kv_cache_scheme');
  const fp8Cache = cache !== undefined && fieldsOf(cache).number('num_bits') === 8;
  const all = (format: Format): Read => ({
    method,
    groups: [{ format, targets: [['Linear', 1]] }],
    ignored,
    fp8Cache,
  });
  const groups = from.object('config_groups');
  if (groups !== undefined) {
    const read = Object.values(groups).flatMap(groupOf);
    return read.length === 0 && Object.keys(groups).length > 0
      ? undefined
      : { method, groups: read, ignored, fp8Cache };
  }
  const bits = from.number('bits', 'w_bit', 'weight_bits');
  switch (method) {
    case 'fp8':
    case 'fbgemm_fp8': {
      const base = all(from.list('weight_block_size') ? { name: 'fp8-block' } : { name: 'fp8' });
      const fp4 = fieldsOf(config).text('expert_dtype') === 'fp4';
      return fp4
        ? { ...base, groups: [...base.groups, { format: { name: 'mxfp4' }, targets: [['mlp.experts', 1]] }] }
        : base;
    }
    case 'mxfp4':
      return {
        method,
        groups: [{ format: { name: 'mxfp4' }, targets: [['mlp.experts', 1]] }],
        ignored: [],
        fp8Cache,
      };
    case 'modelopt':
    case 'modelopt_fp4':
    case 'nvfp4': {
      const format = formatOfAlgo(from.text('quant_algo') ?? 'nvfp4');
      return format === undefined ? undefined : all(format);
    }
    case 'bitsandbytes':
      return all({ name: 'int', bits: from.flag('load_in_8bit') === true ? 8 : 4, group: 64 });
    case 'quark': {
      const weight = fieldsOf(from.object('global_quant_config') ?? {}).object('weight');
      const dtype = weight === undefined ? '' : (fieldsOf(weight).text('dtype') ?? '');
      const format = /^fp4/.test(dtype) ? ({ name: 'mxfp4' } as const) : formatOfAlgo(dtype);
      return format === undefined ? undefined : all(format);
    }
    default:
      if (bits === undefined || bits <= 0 || bits > 16) {
        const format = formatOfAlgo(method);
        return format === undefined ? undefined : all(format);
      }
      return all({ name: 'int', bits, group: Math.max(0, from.number('group_size', 'q_group_size') ?? 0) });
  }
}

function groupOf(value: unknown): readonly Group[] {
  if (!isObject(value)) return [];
  const from = fieldsOf(value);
  const weights = fieldsOf(from.object('weights') ?? {});
  const bits = weights.number('num_bits');
  if (bits === undefined || bits <= 0) return [];
  const targets = listed(from.list('targets') ?? from.list('targets_sample') ?? ['Linear']);
  const size = weights.number('group_size') ?? 0;
  const float = weights.text('type') === 'float';
  const format: Format = !float
    ? { name: 'int', bits, group: size }
    : bits === 4
      ? { name: size === 32 ? 'mxfp4' : 'nvfp4' }
      : { name: weights.text('strategy') === 'block' ? 'fp8-block' : 'fp8' };
  return [{ format, targets }];
}

function listed(value: readonly unknown[] | Json | undefined): Listed {
  if (value === undefined) return [];
  if (Array.isArray(value))
    return value.flatMap((name) => (typeof name === 'string' ? [[name, 1] as const] : []));
  return Object.entries(value).map(([name, count]) => [name, typeof count === 'number' ? count : 1] as const);
}

/** Lists of module names → share of every kind in every format. */
function schemeOf(read: Read, model: Architecture | undefined): Scheme {
  const formats: Partial<Record<TensorKind, { format: Format; share: number }[]>> = {};
  const whole = read.groups.filter((group) => group.targets.some(([name]) => name === 'Linear'));
  const single = read.groups.filter((group) => !whole.includes(group));
  for (const { format } of whole)
    for (const kind of LINEAR_KINDS)
      formats[kind] = [{ format, share: 1 - Math.min(1, shareOf(read.ignored, kind, model)) }];
  for (const { format, targets } of single)
    for (const kind of [...LINEAR_KINDS, 'head'] as const) {
      const share = Math.min(1, shareOf(targets, kind, model));
      if (share === 0) continue;
      const before = (formats[kind] ?? []).map((part) => ({ ...part, share: part.share * (1 - share) }));
      formats[kind] = [...before, { format, share }];
    }
  const mtp = read.ignored.some(([name]) => /mtp|nextn/.test(name) || isPastLast(name, model));
  const main = mainFormat({ ...UNQUANTISED, formats });
  return {
    formats,
    mtp: mtp ? 'own-type' : 'as-layers',
    title: titleOf(read.groups.map((group) => group.format)),
    from: read.method,
    repacked: main?.name === 'int',
    fp8Cache: read.fp8Cache,
  };
}

function isPastLast(name: string, model: Architecture | undefined): boolean {
  const index = /layers\.(\d+)/.exec(name)?.[1];
  return index !== undefined && model !== undefined && Number(index) >= model.layers.length;
}

/** What share of a kind's matrices a list names. */
function shareOf(names: Listed, kind: TensorKind, model: Architecture | undefined): number {
  let share = 0;
  for (const [name, count] of names) {
    if (/mtp|nextn/.test(name) || isPastLast(name, model)) continue;
    const wide = /(?:self_attn|attention|attn)[*.\\]*$/.test(name) && !/linear_attn/.test(name);
    const found = kindOf(name);
    const meant = wide
      ? kind === 'attention' || kind === 'key-value' || kind === 'latent-down'
      : found.kind === kind;
    if (!meant) continue;
    const whole = wide || !/(?:proj|fc|conv|qkv|_z|_[abo])(?:[*$.\\]|$|\w*$)/.test(name);
    const matrices = whole ? 1 : matricesOf(kind, found.of, model);
    // A pattern stands for all layers; a list that goes layer by layer names each.
    const layers = count > 1 || /(?:^|\.)\d+\./.test(name) ? layersWith(kind, model) : 1;
    share += Math.max(1, count) / (layers * matrices);
  }
  return share;
}

function matricesOf(kind: TensorKind, usual: number, model: Architecture | undefined): number {
  return kind === 'attention' && model?.latent !== undefined ? 3 : usual;
}

function layersWith(kind: TensorKind, model: Architecture | undefined): number {
  if (model === undefined) return 1;
  const count = model.layers.filter(({ mixer, feed }) => {
    if (kind === 'linear-attention') return mixer === 'linear';
    if (kind === 'mamba') return mixer === 'mamba';
    if (kind === 'dense') return feed === 'dense';
    if (kind === 'experts' || kind === 'shared-expert') return feed === 'experts';
    return mixer === 'full' || mixer === 'sliding';
  }).length;
  return Math.max(1, count);
}
