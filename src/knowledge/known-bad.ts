import type { EngineName } from '../domain/recipe.ts';

/** What decides whether an engine is known to fail: seen on the nodes that would run it. */
export type EngineScene = {
  readonly engine: EngineName;
  /** Versions on the nodes, as far as they are known. */
  readonly versions: readonly string[];
  /** Names of all GPUs of all nodes; undefined where those of a node are not known. */
  readonly gpus: readonly string[] | undefined;
  readonly nodes: number;
  /** `quant_method` of the model's configuration, in lower case; empty for none. */
  readonly quantisation: string;
  /** Whether the model has experts. */
  readonly experts: boolean;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

/** An engine that fails whenever all of this is so. */
export type KnownBad = {
  readonly engine: EngineName;
  /** Slug of docs/causes.md. */
  readonly cause: string;
  fits(scene: EngineScene): boolean;
  /** One clause that follows the engine's name. */
  readonly why: string;
  readonly source: string;
};

const onSpark = ({ gpus }: EngineScene): boolean => gpus?.some((name) => name.includes('GB10')) === true;
const version =
  (form: RegExp) =>
  ({ versions }: EngineScene): boolean =>
    versions.some((one) => form.test(one));

/** Each entry is a published failure that no setting of ours avoids. */
const knownBad: readonly KnownBad[] = [
  {
    engine: 'vllm-ray',
    cause: 'ray-gpu-not-registered',
    fits: ({ gpus }) => gpus?.length === 0,
    why: 'refuses Ray on hosts without a GPU: "current platform cpu does not support ray"',
    source: 'vLLM v1/executor/ray_utils.py',
  },
  {
    engine: 'vllm',
    cause: 'cuda-graph-capture-with-host-staged-nccl',
    fits: (scene) =>
      onSpark(scene) &&
      scene.nodes > 1 &&
      version(/^0\.27\./)(scene) &&
      !scene.args.some((word) => word === '--enforce-eager'),
    why: '0.27 breaks its CUDA graphs on pairs of GB10, where NCCL stages data through the host meanwhile',
    source: 'vllm-project/vllm#46253',
  },
  {
    engine: 'vllm',
    cause: 'kernels-not-built-for-sm121',
    fits: (scene) =>
      onSpark(scene) &&
      scene.experts &&
      /fp4/.test(scene.quantisation) &&
      version(/^0\.(?:[0-9]|1[0-2])\./)(scene) &&
      scene.env['VLLM_USE_FLASHINFER_MOE_FP4'] === '1',
    why: 'up to 0.12 has no FlashInfer FP4 experts for the GB10, and env forces them',
    source: 'vllm-project/vllm#30163',
  },
];

/** The entry that speaks against an engine here, or undefined. */
export function knownToFail(scene: EngineScene): KnownBad | undefined {
  return knownBad.find((entry) => entry.engine === scene.engine && entry.fits(scene));
}
