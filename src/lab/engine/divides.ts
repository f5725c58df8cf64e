import { lacks } from './lacks.ts';
import type { Model } from './model-folder.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/**
 * What both engines hold a model against while they build its layers: each rank's slice of a projection quantised in
 * blocks must be whole blocks (fp8.py). vLLM also deals out the heads of a vision tower (distributed/utils.py `divide`),
 * which SGLang pads. Throws in their words.
 */
export function checkSlices(
  model: Model,
  { tensor, engine }: { readonly tensor: number; readonly engine: 'sglang' | 'vllm' },
): void {
  const { visionHeads, blockWidth: block, kvHeads, headDim } = model;
  if (engine === 'vllm' && visionHeads !== undefined && visionHeads % tensor !== 0)
    throw new PythonError('load', 'AssertionError', `${visionHeads} is not divisible by ${tensor}`);
  // Where there are more ranks than key-value heads each has a whole one.
  const slice = (Math.max(kvHeads, tensor) / tensor) * headDim;
  if (tensor > 1 && block !== undefined && slice % block !== 0)
    throw new PythonError(
      'load',
      'ValueError',
      `Weight output_partition_size = ${slice} is not divisible by weight quantization block_n = ${block}.`,
    );
}

/** Both registries look the model's class up by the name in config.json: throws in their words for one that this build has not. */
export function checkArchitecture({ architecture }: Model, env: Env): void {
  if (lacks(env, architecture))
    throw new PythonError(
      'load',
      'ValueError',
      `Model architectures ['${architecture}'] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM', 'Qwen3MoeForCausalLM'])`,
    );
}
