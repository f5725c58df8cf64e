import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { treat } from '../../src/diagnosis/treat.ts';
import { known, type ModelFacts, type NodeFacts, unknown } from '../../src/domain/facts.ts';
import type { Treatment } from '../../src/domain/finding.ts';
import { type EngineName, editRecipe, type Recipe } from '../../src/domain/recipe.ts';
import { evidenceOf } from './cases.ts';
import { sparkFacts } from './facts.ts';

/** What the failure of these lines is cured by, and the recipe that comes out. */
function cured(
  engine: EngineName,
  head: string,
  recipe: object = {},
  tried: readonly string[] = [],
  facts: readonly NodeFacts[] = [],
): { readonly treatment: Treatment | undefined; readonly after: Recipe } {
  const evidence = evidenceOf({ engine, logs: { head: [head], worker: [] }, recipe, ended: { head: 1 } });
  const finding = diagnose(evidence, { final: true });
  const treatment = treat({
    recipe: evidence.recipe,
    engine,
    finding,
    facts,
    evidence,
    tried: tried.map((remedy) => ({ engine, remedy, cause: finding.cause })),
  });
  return { treatment, after: editRecipe(evidence.recipe, treatment?.edits ?? []) };
}

describe('a remedy for flags', () => {
  it('writes a value as the engine does, in args or in the key it came from', () => {
    const choice = (flag: string, value: string) =>
      `launch_server.py: error: argument ${flag}: invalid choice: '${value}' (choose from 'triton', 'flashinfer', 'deepseek-r1', 'qwen3')`;
    const args = { sglang: ['--attention-backend', 'flash_infer', '--page-size', '64'] };
    expect(cured('sglang', choice('--attention-backend', 'flash_infer'), { args }).after.args.sglang).toEqual(
      ['--page-size', '64', '--attention-backend', 'flashinfer'],
    );
    const serve = { reasoning: 'deepseek_r1' };
    expect(
      cured('sglang', choice('--reasoning-parser', 'deepseek_r1'), { serve }).after.serve.reasoning,
    ).toBe('deepseek-r1');
  });

  it('leaves out a flag of the other engine, and its value', () => {
    const line = 'vllm serve: error: unrecognized arguments: --mem-fraction-static 0.85';
    const args = { vllm: ['--mem-fraction-static', '0.85', '--enforce-eager'] };
    expect(cured('vllm', line, { args }).after.args.vllm).toEqual(['--enforce-eager']);
  });
});

describe('a remedy for kernels', () => {
  const missing = 'RuntimeError: CUDA error: no kernel image is available for execution on the device';

  it('first takes away what forces them, then asks for Marlin', () => {
    const recipe = {
      env: { VLLM_USE_FLASHINFER_MOE_FP4: '1' },
      args: { vllm: ['--moe-backend', 'flashinfer_trtllm'] },
    };
    const first = cured('vllm', missing, recipe);
    expect(first.treatment?.remedy).toBe('unforced-kernels');
    expect(first.after.env).toEqual({});
    expect(first.after.args.vllm).toEqual([]);
    const second = cured('vllm', missing, {}, ['unforced-kernels']);
    expect(second.after.args.vllm).toEqual(['--moe-backend', 'marlin']);
    expect(cured('vllm', missing, { args: { vllm: ['--moe-backend', 'marlin'] } }).treatment).toBeUndefined();
  });

  it('takes the attention backend that the engine asks for, else the plainest that was not in use', () => {
    const asked =
      'AssertionError: triton or trtllm_mha backend are the only supported backends on Blackwell GPUs for hybrid GDN models, use --attention-backend triton or --attention-backend trtllm_mha to specify the backend.';
    expect(
      cured('sglang', asked, { args: { sglang: ['--attention-backend=fa3'] } }).after.args.sglang,
    ).toEqual(['--attention-backend', 'triton']);
    const unfit =
      "ValueError: Selected backend AttentionBackendEnum.TRITON_ATTN is not valid for this configuration. Reason: ['head_size not supported']";
    const { after } = cured('vllm', unfit, { env: { VLLM_ATTENTION_BACKEND: 'TRITON_ATTN' } });
    expect(after.env).toEqual({});
    expect(after.args.vllm).toEqual(['--attention-backend', 'FLASHINFER']);
  });

  it('points Triton to the ptxas of the toolkit', () => {
    const line = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'";
    expect(cured('vllm', line).after.env).toEqual({ TRITON_PTXAS_PATH: '/usr/local/cuda/bin/ptxas' });
  });

  it('gives each node a cache of its own', () => {
    const line = "OSError: [Errno 116] Stale file handle: '/share/cache/triton/7c1e'";
    const { after, treatment } = cured('sglang', line, { env: { TRITON_CACHE_DIR: '/share/cache/triton' } });
    expect(treatment?.remedy).toBe('own-caches');
    expect(new Set(Object.values(after.env).map((path) => path.split('/')[1]))).toEqual(new Set(['tmp']));
  });

  it('waits longer for a step in which one may be compiled', () => {
    const evidence = evidenceOf({
      engine: 'vllm',
      logs: {
        head: [
          '(EngineCore pid=2) ERROR 05-05 12:10:00 [core.py:1349] TimeoutError: RPC call to execute_model timed out.',
        ],
        worker: [
          '2026-05-05 12:04:30  [TileLang:tilelang.jit.kernel:INFO]: TileLang begins to compile kernel `main`',
        ],
      },
      ended: { head: 1 },
    });
    const finding = diagnose(evidence, { final: true });
    expect(
      treat({ recipe: evidence.recipe, engine: 'vllm', finding, facts: [], evidence, tried: [] })?.edits,
    ).toEqual([{ path: 'env.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS', from: undefined, to: '1800' }]);
  });
});

describe('a remedy for the layout', () => {
  it('splits layers over a number that divides the heads, and puts the rest in a row', () => {
    const line =
      'ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (3).';
    const { after } = cured('vllm', line, { layout: { nodes: 3, tensor: 3 } });
    expect(after.layout).toMatchObject({ tensor: 1, pipeline: 3 });
    const six = line.replace('(3)', '(6)');
    expect(cured('vllm', six, { layout: { nodes: 3, tensor: 6 } }).after.layout).toMatchObject({
      tensor: 2,
      pipeline: 3,
    });
  });

  it('shares out whole experts before it takes fewer slices', () => {
    const line =
      'ValueError: Weight output_partition_size = 96 is not divisible by weight quantization block_n = 128.';
    expect(cured('sglang', line).after.layout).toMatchObject({ tensor: 2, expert: 2 });
    const next = cured('sglang', line, { layout: { nodes: 2, tensor: 2, expert: 2 } });
    expect(next.after.layout).toMatchObject({ tensor: 1, pipeline: 2, expert: 1 });
  });

  it.each([
    ['a model without experts', {}],
    ['experts that are split in whole blocks', { num_experts: 64, moe_intermediate_size: 512 }],
  ])('takes fewer slices at once for %s', (_, experts) => {
    const line =
      'ValueError: Weight output_partition_size = 64 is not divisible by weight quantization block_n = 128.';
    const config = {
      model_type: 'qwen3_moe',
      num_hidden_layers: 2,
      hidden_size: 1024,
      num_attention_heads: 16,
      vocab_size: 1000,
      intermediate_size: 4096,
      ...experts,
    };
    const model: ModelFacts = {
      present: true,
      path: '/models/model-x',
      config: known(config),
      indexBytes: unknown('not looked at'),
      missingFiles: [],
      files: [],
    };
    const facts = sparkFacts({ node: 'spark-a', more: { model: known(model) } });
    const { after } = cured('sglang', line, {}, [], [facts]);
    expect(after.layout).toMatchObject({ tensor: 1, pipeline: 2, expert: 1 });
  });
});

describe('a remedy for what is served', () => {
  it('asks the hub for nothing where it is not reached, unless it is offline already', () => {
    const unreached =
      "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.";
    expect(cured('vllm', unreached).after.env).toMatchObject({ HF_HUB_OFFLINE: '1' });
    const offline =
      'huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/org/m1: offline mode is enabled.';
    expect(cured('vllm', offline).treatment).toBeUndefined();
  });

  it('takes the parsers of the model’s type, and goes without where these do not fit', () => {
    const tools =
      'RuntimeError: Hermes 2 Pro Tool parser could not locate tool call start/end tokens in the tokenizer!';
    expect(cured('vllm', tools, { serve: { tools: 'hermes' } }).after.serve.tools).toBe('auto');
    expect(cured('vllm', tools, { serve: { tools: 'auto' } }).after.serve.tools).toBe('none');
    const off = 'TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser';
    const alone = { args: { vllm: ['--enable-auto-tool-choice'] }, serve: { tools: 'none' } };
    expect(cured('vllm', off, alone).after).toMatchObject({ args: { vllm: [] }, serve: { tools: 'auto' } });
    const think =
      'RuntimeError: Qwen3ReasoningParser reasoning parser could not locate think start/end tokens in the tokenizer!';
    expect(cured('vllm', think, { args: { vllm: ['--reasoning-parser', 'qwen3'] } }).after.args.vllm).toEqual(
      [],
    );
    expect(cured('vllm', think, { serve: { reasoning: 'qwen3' } }).after.serve.reasoning).toBe('auto');
  });

  it('goes without speculation where that is what fails', () => {
    const evidence = evidenceOf({
      engine: 'sglang',
      logs: {
        head: [
          '  File "/sgl/sglang/srt/speculative/eagle_worker.py", line 633, in forward_draft_extend',
          'IndexError: index 8 is out of bounds for dimension 0 with size 8',
        ],
      },
      recipe: {
        layout: { nodes: 1, tensor: 1 },
        args: {
          sglang: ['--speculative-algorithm', 'EAGLE', '--speculative-num-steps=3', '--page-size', '1'],
        },
      },
      ended: { head: 1 },
    });
    const finding = diagnose(evidence, { final: true });
    const treatment = treat({
      recipe: evidence.recipe,
      engine: 'sglang',
      finding,
      facts: [],
      evidence,
      tried: [],
    });
    expect(treatment?.edits).toEqual([
      { path: 'args.sglang', from: evidence.recipe.args.sglang, to: ['--page-size', '1'] },
    ]);
  });

  it('never runs a model’s own code by itself', () => {
    const line = 'Please pass the argument `trust_remote_code=True` to allow custom code to be run.';
    expect(cured('vllm', `ValueError: ${line}`).treatment).toBeUndefined();
  });
});
