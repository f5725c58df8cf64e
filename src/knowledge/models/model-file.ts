import type { ModelSources } from './describe.ts';
import { fieldsOf, type Json } from './fields.ts';

/**
 * A model from one JSON object: a config.json, or a description that keeps the config's values under `config`, with
 * the words for its format, hf_quant_config and the size of the files beside them.
 */
export function sourcesOf(file: Json, name: string): ModelSources {
  const from = fieldsOf(file);
  // A description of a model whose config nobody has may still tell the size of its files.
  const described = 'safetensors_total' in file || 'weight_format' in file;
  const inner = from.object('config') ?? (described ? {} : undefined);
  if (inner === undefined) return { name, config: file };
  const stated = from.object('safetensors_total');
  const amounts = stated === undefined ? undefined : fieldsOf(stated);
  const bytes = amounts?.number('bytes', 'bytes_approx');
  const counted = /log line|sum of the/.test(amounts?.text('how') ?? '');
  return {
    name: from.text('name', 'hf_id') ?? name,
    config: {
      ...inner,
      // The wrapper's members stand beside the language model's values, as a config.json of a plain model has them.
      ...(from.object('vision_config') === undefined ? {} : { vision_config: from.object('vision_config') }),
      ...(from.object('quantization_config') === undefined
        ? {}
        : { quantization_config: from.object('quantization_config') }),
    },
    modelopt: from.object('hf_quant_config'),
    words: from.text('weight_format'),
    total: bytes === undefined || bytes === 0 ? undefined : { bytes, from: counted ? 'log' : 'saying' },
  };
}
