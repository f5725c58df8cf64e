import { expect, test } from 'vitest';
import { fitting, GIB, rank } from './ask.ts';

const concurrency = (name: string, available: number, asked: Parameters<typeof rank>[1]) =>
  rank(name, { ...asked, settings: { ...asked?.settings, availableKvBytes: available * GIB } })
    .maxConcurrency;

// "Maximum concurrency for N tokens per request" as vLLM printed it, and the cache memory it printed before.
test.each([
  ['Qwen3.6-35B-A3B', 47.55, { context: 131_072, settings: { prefixCaching: false } }, 18.44],
  ['gemma-4-26B-A4B', 40.61, { context: 8192, settings: { batchedTokens: 4096 } }, 35.75],
  ['gemma-4-26B-A4B', 44.03, { context: 8192, settings: { batchedTokens: 4096 } }, 38.76],
  ['Llama-3.3-70B', 46.4, { layout: { tensor: 8 }, context: 16_384 }, 74.23],
  [
    'Llama-3.3-70B',
    47.77,
    { layout: { tensor: 8 }, context: 16_384, settings: { kvCacheDtype: 'fp8' } },
    152.85,
  ],
  ['Qwen2.5-1.5B', 62.71, { context: 512, settings: { blockSize: 128 } }, 4586.91],
  [
    'Qwen3.6-35B-A3B-NVFP4',
    5.98,
    { context: 131_072, settings: { kvCacheDtype: 'fp8', prefixCaching: true } },
    4.33,
  ],
  [
    'Qwen3.6-35B-A3B-NVFP4',
    62.81,
    {
      context: 262_144,
      settings: {
        speculative: { method: 'dflash', tokens: 15 },
        draftBytes: 0.88 * GIB,
        prefixCaching: true,
      },
    },
    4.74,
  ],
])('%s with %f GiB of cache holds as many requests as vLLM says', (name, available, asked, seen) => {
  const found = concurrency(name, available, asked) ?? Number.NaN;
  expect(Math.abs(found / seen - 1)).toBeLessThan(0.005);
});

// "GPU KV cache size" of boots that no case holds, which the rules were not made from (noonghunna/club-3090 #594,
// mitchross/talos-argocd-proxmox #1995, club-3090 #75, #76, #1086): concurrency times the context since June 2026.
test.each([
  ['Qwen3.8-27B-FP8', 4.99, 131_072, { kvCacheDtype: 'fp8' }, 302_921],
  [
    'Qwen3.6-27B-FP8',
    5.33,
    262_144,
    { kvCacheDtype: 'fp8', speculative: { method: 'mtp', tokens: 3 } },
    300_220,
  ],
  ['Qwen3.6-27B-FP8', 9.58, 185_000, { speculative: { method: 'dflash', tokens: 5 } }, 188_838],
  ['Qwen3.6-27B-FP8', 10.36, 200_000, { speculative: { method: 'dflash', tokens: 5 } }, 204_615],
  ['Qwen3.8-27B-FP8', 11.15, 65_536, { speculative: { method: 'dflash2', tokens: 7 } }, 214_135],
])('%s over two cards with %f GiB of cache for %i tokens, %j, has as many as was printed', (...of) => {
  const [name, available, context, settings, seen] = of;
  const { poolTokens } = rank(name, {
    layout: { tensor: 2 },
    context,
    settings: { ...settings, prefixCaching: true, batchedTokens: 8192, availableKvBytes: available * GIB },
  });
  expect(Math.abs((poolTokens ?? Number.NaN) / seen - 1)).toBeLessThan(0.001);
});

test('sliding windows want more since vLLM 0.26: between the two a launch may boot', () => {
  // vllm#49878: 45.79 GiB until 0.25, 70.79 GiB since.
  const at = (gib: number) =>
    fitting('gemma-4-31B-NVFP4', {
      total: 139.8,
      context: 262_144,
      settings: { batchedTokens: 32_768, availableKvBytes: gib * GIB },
    });
  const between = at(60);
  expect(between.checks.find(({ name }) => name === 'cache')?.what).toMatch(
    /takes 45\.79 GiB \(70\.79 GiB with vLLM since 0\.26\)/,
  );
  expect([at(40), between, at(75)].map(({ verdict }) => verdict)).toEqual([
    'does not fit',
    'may boot',
    'fits',
  ]);
});

// GiB for one request of the whole length, as vLLM's refusal says it.
test.each([
  ['Qwen3-Coder-480B-A35B', 1, 262_144, 'auto', 62],
  ['MiniMax-M2.7-AWQ-4bit', 2, 196_608, 'auto', 23.25],
  ['Qwen3-30B-A3B', 1, 131_072, 'fp8', 6],
  ['Qwen3-VL-4B', 2, 32_768, 'fp8', 1.12],
])('%s at tensor %i needs for %i tokens (%s) what vLLM says', (name, tensor, context, kvCacheDtype, seen) => {
  const { kvBytesPerToken } = rank(name, { layout: { tensor }, context, settings: { kvCacheDtype } });
  expect(((kvBytesPerToken ?? 0) * context) / GIB).toBeCloseTo(seen, 1);
});

test('the block of a hybrid grows to the state’s page, and with the tokens that are proposed', () => {
  const block = (name: string, settings: object) =>
    rank(name, { context: 65_536, total: 121, settings }).blockTokens;
  expect(block('Qwen3.6-35B-A3B', {})).toBe(1056);
  expect(block('Qwen3.6-35B-A3B', { speculative: { method: 'dflash', tokens: 15 } })).toBe(1168);
  expect(block('Nemotron-3-Super-120B-A12B-NVFP4', { kvCacheDtype: 'fp8' })).toBe(8320);
  const mtp = { kvCacheDtype: 'fp8', speculative: { method: 'mtp', tokens: 3 } };
  expect(block('Nemotron-3-Super-120B-A12B-NVFP4', mtp)).toBe(8432);
  expect(block('Nemotron-3-Super-120B-A12B-NVFP4', { ...mtp, prefixCaching: true })).toBe(8448);
});

test('state of hybrids, one slot over all layers', () => {
  const state = (name: string, tensor: number) => rank(name, { layout: { tensor } }).stateBytesPerSequence;
  expect((state('Qwen3.5-122B-A10B', 1) ?? 0) / 2 ** 20).toBeCloseTo(146.5, 1);
  expect((state('Qwen3.5-122B-A10B', 2) ?? 0) / 2 ** 20).toBeCloseTo(73.3, 1);
  expect(state('Llama-3.1-8B', 1)).toBe(0);
});

test('latent attention keeps one cache for all heads, its packed form 656 bytes and an indexer’s 132', () => {
  expect(rank('Kimi-K2-Instruct', { layout: { tensor: 8 } }).kvBytesPerToken).toBe(70_272);
  const packed = rank('GLM-5.2-NVFP4', { layout: { tensor: 8 }, settings: { kvCacheDtype: 'fp8_ds_mla' } });
  expect(packed.kvBytesPerToken).toBe(78 * 656 + 21 * 132);
});

test('decode context parallel deals a request out over the ranks', () => {
  const asked = { layout: { tensor: 8 }, context: 131_072 };
  const one = concurrency('Kimi-K2-Instruct', 20, asked) ?? 0;
  const eight = concurrency('Kimi-K2-Instruct', 20, { ...asked, settings: { dcp: 8 } }) ?? 0;
  expect(eight / one).toBeCloseTo(8, 1);
});

test('SGLang takes its fraction of what is free, and state of a hybrid before the tokens', () => {
  // Load weight end 3.25 of 112.26 GiB free, fraction 0.4: 1,557,709 tokens.
  const dense = rank('Qwen2.5-1.5B', {
    engine: 'sglang',
    unified: true,
    total: 121.69,
    available: 112.26,
    settings: { fraction: 0.4 },
  });
  expect(Math.abs((dense.poolTokens ?? 0) / 1_557_709 - 1)).toBeLessThan(0.02);
  const kept = fitting('Qwen2.5-1.5B', {
    engine: 'sglang',
    unified: true,
    total: 121.69,
    available: 112.26,
    settings: { fraction: 0.4 },
  });
  expect(kept.startCheck.passes).toBe(true);
  // H100: 124 slots of 17.92 GiB, 330,323 tokens in what was left.
  const rest = (17.92 * 1.9) / 0.9;
  const hybrid = rank('Qwen3.8-27B-FP8', {
    engine: 'sglang',
    context: 32_768,
    settings: { availableKvBytes: rest * GIB, kvCacheDtype: 'bf16' },
  });
  expect(Math.abs((hybrid.poolTokens ?? 0) / 330_323 - 1)).toBeLessThan(0.01);
});
