import type { Options } from './command-line.ts';
import type { EngineWorld } from './engine-world.ts';
import { modelOf, readConfig, realPath } from './model-folder.ts';
import { VllmLog } from './output.ts';
import type { Pace } from './pace.ts';
import type { Env } from './rank.ts';
import { mainTraceback } from './vllm-frames.ts';

/** The version the log lines carry: their forms are those of August 2026. */
export const VERSION = '0.28.1';

export type VllmRun = {
  readonly world: EngineWorld;
  readonly pace: Pace;
  readonly env: Env;
  readonly options: Options;
  readonly program: string;
};

/** Who this rank is, and the prefixes its processes log with. */
export type VllmPlace = {
  readonly rank: number;
  readonly nnodes: number;
  readonly tensor: number;
  readonly pipeline: number;
  readonly headless: boolean;
  /** The workers are Ray's. */
  readonly overRay: boolean;
  readonly model: string;
  readonly address: string;
  readonly port: number;
  readonly api: string;
  readonly core: string;
  /** Before the groups exist, and after. */
  readonly early: string;
  readonly worker: string;
  readonly log: VllmLog;
};

/** A worker that a node's Ray started, of that rank, told where the ranks meet. */
export function rayPlaceOf(
  options: Options,
  at: { readonly rank: number; readonly address: string; readonly port: number },
): VllmPlace {
  return { ...placeOf(options, 'vllm'), ...at, headless: true, api: '', core: '', early: '', worker: '' };
}

/** Arguments → place; a node is one rank. */
export function placeOf(options: Options, program: string): VllmPlace {
  const tensor = options.number('tensor-parallel-size') ?? 1;
  const pipeline = options.number('pipeline-parallel-size') ?? 1;
  const rank = options.number('node-rank') ?? 0;
  // The module's own entry takes no notice of --headless.
  const headless = options.has('headless') && program === 'vllm';
  const { pid } = process;
  const core = `(EngineCore pid=${pid + 1}) `;
  const overRay = options.text('distributed-executor-backend') === 'ray';
  const alone = tensor * pipeline === 1;
  const id = pid + (headless ? 1 : 2);
  const pp = pipeline > 1 ? `_PP${Math.floor(rank / tensor)}` : '';
  const actor = `${core}(RayWorkerProc pid=${id}) `;
  const tp = tensor > 1 ? `_TP${rank % tensor}` : '';
  const ep = tensor > 1 && options.has('enable-expert-parallel') ? `_EP${rank % tensor}` : '';
  return {
    rank,
    // Over Ray each rank has a node's only GPU, and nobody says so on the command line.
    nnodes: overRay ? tensor * pipeline : (options.number('nnodes') ?? 1),
    overRay,
    tensor,
    pipeline,
    headless,
    model: options.positionals[0] ?? options.text('model') ?? 'Qwen/Qwen3-0.6B',
    address: options.text('master-addr') ?? '127.0.0.1',
    port: options.number('master-port') ?? 29501,
    api: headless ? '' : `(APIServer pid=${pid}) `,
    core,
    early: alone ? core : overRay ? actor : `(Worker pid=${id}) `,
    worker: alone ? core : overRay ? actor : `(Worker${pp}${tp}${ep} pid=${id}) `,
    log: new VllmLog(),
  };
}

/** What the API server and the headless parent check before an engine starts; the traceback, or undefined. */
export function earlyProblem({ options, env }: VllmRun, place: VllmPlace): string | undefined {
  const invalid = (of: string, message: string): string =>
    mainTraceback(
      'pydantic_core._pydantic_core.ValidationError',
      `1 validation error for ${of}\n  Value error, ${message} [type=value_error, input_value=ArgsKwargs((), {'model': '${place.model}'}), input_type=ArgsKwargs]\n    For further information visit https://errors.pydantic.dev/2.12/v/value_error`,
    );
  const folder = realPath(place.model, env);
  const config = folder === undefined ? undefined : readConfig(folder);
  if (config === undefined || folder === undefined)
    return invalid(
      'ModelConfig',
      `Invalid repository ID or local directory specified: '${place.model}'.\nPlease verify the following requirements:\n1. Provide a valid Hugging Face repository ID.\n2. Specify a local directory that contains a recognized configuration file.`,
    );
  const model = modelOf(folder, config, { bytes: 0, shards: [] });
  if (model.heads % place.tensor !== 0)
    return invalid(
      'VllmConfig',
      `Total number of attention heads (${model.heads}) must be divisible by tensor parallel size (${place.tensor}).`,
    );
  const asked = maxModelLen(options);
  if (asked !== undefined && asked > model.maxPositions && env.VLLM_ALLOW_LONG_MAX_MODEL_LEN !== '1')
    return invalid(
      'ModelConfig',
      `User-specified max_model_len (${asked}) is greater than the derived max_model_len (max_position_embeddings=${model.maxPositions} or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.`,
    );
  if (!place.headless && options.has('enable-auto-tool-choice') && !options.has('tool-call-parser'))
    return mainTraceback('TypeError', 'Error: --enable-auto-tool-choice requires --tool-call-parser');
  const world = place.tensor * place.pipeline;
  if (world % place.nnodes !== 0 || world / place.nnodes > 1)
    return mainTraceback(
      'ValueError',
      `World size (${world}) is larger than the number of available GPUs (1) in this node. If this is intentional and you are using: - ray, set '--distributed-executor-backend ray'. - multiprocessing, set '--nnodes' appropriately.`,
    );
  return undefined;
}

/** `--max-model-len`: a number, `64k` or `1M` in vLLM's own spelling; `auto` and -1 are undefined, as is none. */
export function maxModelLen(options: Options): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([kKmM]?)$/.exec(options.text('max-model-len') ?? '');
  if (match === null) return undefined;
  const unit = { '': 1, k: 1e3, K: 1024, m: 1e6, M: 2 ** 20 }[match[2] ?? ''] ?? 1;
  return Math.floor(Number(match[1]) * unit);
}

/** `25769803776`, `24G`, `24GiB` → bytes. */
export function bytesOf(text: string | undefined): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?B?)$/.exec(text ?? '');
  if (match === null) return undefined;
  const power = ['', 'k', 'm', 'g', 't'].indexOf((match[2] ?? '').toLowerCase());
  const binary = (match[3] ?? '').startsWith('i') || /[KMGT]/.test(match[2] ?? '');
  return Math.floor(Number(match[1]) * (binary ? 1024 : 1000) ** power);
}

/** What was given, as a Python dict; a key is never shown. */
export function argumentsText(options: Options, place: VllmPlace): string {
  const shown = options.entries().map(([key, values]) => {
    const python =
      values.length === 0
        ? 'True'
        : key === 'api-key'
          ? "['********']"
          : /^-?\d+(\.\d+)?$/.test(values[0] ?? '')
            ? (values[0] ?? '')
            : `'${values[0]}'`;
    return `'${key.replaceAll('-', '_')}': ${python}`;
  });
  return [`'model_tag': '${place.model}'`, ...shown].join(', ');
}
