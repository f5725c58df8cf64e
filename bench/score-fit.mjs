// Holds `firstlight fit` against what public starts really did: one command per case of test/samples/fit/cases.json,
// with nothing but what a user would have said before. Positions count from 1; those divisible by 4 are held back:
// they are told as sums alone, so that nobody fits the rules to them; `--seen` leaves them out, `--cases` adds a line
// for each of the others.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';

const GIB = 2 ** 30;
const FOLDER = new URL('../test/samples/fit/', import.meta.url).pathname;
const PROGRAM = `${process.env.FIRSTLIGHT_DIST ?? 'dist'}/main.js`;
const EVERY = 4;
const run = promisify(execFile);
const byCase = process.argv.includes('--cases');
const seenAlone = process.argv.includes('--seen');

const cases = JSON.parse(readFileSync(`${FOLDER}cases.json`, 'utf8'));
const held = (index) => (index + 1) % EVERY === 0;

/** A case as the flags of the command; `more` are settings beside its own. */
function flagsOf(one, more = []) {
  const { flags, hardware, observed } = one;
  const args = ['fit', '--json', '--model', `${FOLDER}models/${one.model}.json`, '--engine', one.engine];
  const add = (flag, value) => value != null && args.push(flag, String(value));
  const set = (key, value) => value != null && args.push('--set', `${key}=${value}`);
  add('--nodes', one.nodes);
  add('--tensor', one.tp);
  add('--pipeline', one.pp);
  add('--expert', one.ep);
  if (one.dp > 1) set('dp', one.dp);
  add('--memory', hardware.memoryTotalGiB && `${hardware.memoryTotalGiB}GiB`);
  if (hardware.unified) args.push('--unified');
  const free = observed?.freeAtBootGiB ?? observed?.memAvailableGiB;
  add('--available', free && `${free}GiB`);
  add('--context', flags.max_model_len ?? flags.context_length);
  add('--sequences', flags.max_num_seqs ?? flags.max_running_requests);
  set('fraction', flags.gpu_memory_utilization ?? flags.mem_fraction_static);
  set('kvCacheDtype', flags.kv_cache_dtype);
  set('kvCacheBytes', flags.kv_cache_memory_bytes);
  set('batchedTokens', flags.max_num_batched_tokens ?? flags.chunked_prefill_size);
  if (flags.speculative) set('speculative', `${flags.speculative.method}:${flags.speculative.num ?? 1}`);
  if (flags.speculative?.drafterCheckpointGiB)
    set('draftBytes', Math.round(flags.speculative.drafterCheckpointGiB * GIB));
  set('eager', flags.enforce_eager ?? flags.disable_cuda_graph);
  set('blockSize', flags.block_size ?? flags.page_size);
  set('prefixCaching', flags.enable_prefix_caching);
  set('languageOnly', flags.language_model_only);
  if (flags.cpu_offload_gb) set('cpuOffloadBytes', flags.cpu_offload_gb * GIB);
  if (flags.swap_space) set('swapBytes', flags.swap_space * GIB);
  set('dcp', flags.decode_context_parallel_size);
  return [...args, ...more];
}

/** The answer of one command; a program that fails is a case that failed, not a number. */
async function ask(args) {
  const { stdout } = await run(process.execPath, [PROGRAM, ...args]).catch((error) => error);
  try {
    const answer = JSON.parse(stdout);
    return answer.verdict === undefined ? undefined : answer;
  } catch {
    return undefined;
  }
}

/** Figures that FORMULAS 3 to 5 print, with the command that has to give them. */
const FIGURES = [
  ['Llama-3.3-70B', 'vllm', { tensor: 8 }, 'kvBytesPerToken', 40_960],
  ['Qwen3-235B-A22B-FP8', 'vllm', { tensor: 4 }, 'kvBytesPerToken', 48_128],
  ['Qwen3.6-27B-FP8', 'vllm', {}, 'kvBytesPerToken', 65_536],
  ['MiniMax-M2.7', 'vllm', { tensor: 2 }, 'kvBytesPerToken', 126_976],
  ['Qwen3-Coder-480B-A35B', 'vllm', {}, 'kvBytesPerToken', 253_952],
  ['Kimi-K2-Instruct', 'vllm', { tensor: 8 }, 'kvBytesPerToken', 70_272],
  ['Qwen3-8B', 'sglang', {}, 'kvBytesPerToken', 147_456],
  ['DeepSeek-V2-Lite', 'vllm', { pipeline: 2, tensor: 2 }, 'kvBytesPerToken', 14 * 1152],
  [
    'GLM-5.2-NVFP4',
    'vllm',
    { tensor: 8, set: ['kvCacheDtype=fp8_ds_mla'] },
    'kvBytesPerToken',
    78 * 656 + 21 * 132,
  ],
  ['Qwen3.6-27B-FP8', 'sglang', {}, 'stateBytesPerSequence', 48 * (10_240 * 3 * 2 + 48 * 128 * 128 * 4)],
  ['Qwen3.5-122B-A10B', 'vllm', { tensor: 2 }, 'stateBytesPerSequence', 73.3 * 2 ** 20],
  ['Qwen3.5-122B-A10B', 'vllm', {}, 'stateBytesPerSequence', 146.5 * 2 ** 20],
  ['Nemotron-3-Super-120B-A12B-NVFP4', 'vllm', { set: ['kvCacheDtype=fp8'] }, 'blockTokens', 8320],
  [
    'Nemotron-3-Super-120B-A12B-NVFP4',
    'vllm',
    { set: ['kvCacheDtype=fp8', 'speculative=mtp:3'] },
    'blockTokens',
    8432,
  ],
  ['Qwen3.6-35B-A3B', 'vllm', {}, 'blockTokens', 1056],
  [
    'Qwen3.6-35B-A3B',
    'vllm',
    { set: ['speculative=dflash:15', `draftBytes=${0.88 * GIB}`] },
    'blockTokens',
    1168,
  ],
  ['Qwen3.6-27B-FP8', 'vllm', { set: ['kvCacheDtype=fp8'] }, 'blockTokens', 1568],
];

function figureFlags([model, engine, { tensor = 1, pipeline = 1, set = [] }]) {
  const args = ['fit', '--json', '--model', `${FOLDER}models/${model}.json`, '--engine', engine];
  args.push('--tensor', `${tensor}`, '--pipeline', `${pipeline}`, '--memory', '121.69GiB');
  return [...args, ...set.flatMap((pair) => ['--set', pair])];
}

/** What one case shows of each question; undefined where it does not ask it. */
async function judge(one) {
  const { observed = {}, flags } = one;
  const fit = await ask(flagsOf(one));
  if (fit === undefined) return { one, failed: true };
  const first = fit.ranks[0];
  const off = (mine, real) => (mine == null || real == null ? undefined : mine / real - 1);
  const weights = observed.weightsGiBPerRank == null ? undefined : observed.weightsGiBPerRank * GIB;
  const available = observed.availableKvGiB == null ? undefined : observed.availableKvGiB * GIB;
  const bar = fit.rules.find(
    ({ about, errorBytes }) => about === 'weights' && errorBytes !== null,
  )?.errorBytes;
  const cache = fit.checks.find(({ name }) => name === 'cache');
  const predicted =
    first.peakBytes == null ? undefined : first.peakBytes - first.weightsBytes - first.overheadBytes;
  let concurrency;
  const at = observed.maxConcurrencyAtLen;
  const pool = available ?? flags.kv_cache_memory_bytes;
  if (at != null && pool != null) {
    const given = await ask([
      ...flagsOf({ ...one, flags: { ...flags, max_model_len: at.len } }, [
        '--set',
        `availableKvBytes=${Math.round(pool)}`,
      ]),
    ]);
    concurrency = { off: off(given?.ranks[0].maxConcurrency, at.x) };
  }
  const { outcome } = observed;
  const up = outcome === 'serves';
  const right =
    outcome == null || fit.verdict === 'unknown'
      ? undefined
      : fit.verdict === 'may boot' || (fit.verdict === 'fits') === up;
  return {
    one,
    verdict: fit.verdict,
    // Weights are null only of a model whose config does not tell its layers, widths and heads.
    knownModel: first.weightsBytes !== null,
    why: fit.why,
    outcome,
    right,
    exact: right === undefined ? undefined : (fit.verdict === 'fits') === up && fit.verdict !== 'may boot',
    wedgedAndFits: outcome === 'host-wedged' && fit.verdict === 'fits',
    weights:
      weights === undefined
        ? undefined
        : { off: off(first.weightsBytes, weights), scored: one.weightsScored !== false },
    weightsInBar:
      weights === undefined || first.weightsBytes == null || bar == null || one.weightsScored === false
        ? undefined
        : Math.abs(first.weightsBytes - weights) <= bar,
    cacheInBar:
      available === undefined || predicted === undefined || cache === undefined || one.weightsScored === false
        ? undefined
        : Math.abs(predicted - available) <= cache.errorBytes,
    cacheOff:
      available === undefined || predicted === undefined
        ? undefined
        : `${((predicted - available) / GIB).toFixed(1)} of ±${((cache?.errorBytes ?? 0) / GIB).toFixed(1)}`,
    blocks: off(first.blockTokens, flags.attention_block_size_logged),
    concurrency,
  };
}

const share = (list, holds) => {
  const asked = list.filter((value) => value !== undefined);
  const good = asked.filter(holds).length;
  return asked.length === 0
    ? 'none'
    : `${good} of ${asked.length} (${Math.round((100 * good) / asked.length)} %)`;
};
const within = (part) => (value) => Math.abs(value) <= part;

function summary(title, judged) {
  const done = judged.filter(({ failed }) => !failed);
  const weights = done.flatMap((one) => (one.weights ? [one.weights] : []));
  const scored = weights.filter((one) => one.scored).map((one) => one.off ?? Number.NaN);
  const other = weights.filter((one) => !one.scored && one.off !== undefined).map((one) => one.off);
  const asked = done.filter(({ outcome }) => outcome !== undefined);
  const known = asked.filter(({ verdict }) => verdict !== 'unknown');
  const isRight = ({ right }) => right ?? false;
  const hasMemory = ({ one }) => one.hardware.memoryTotalGiB != null;
  const asks = done.flatMap(({ concurrency }) => (concurrency ? [concurrency.off] : []));
  const rows = [
    ['cases, and commands that failed', `${judged.length}, ${judged.length - done.length}`],
    ['weights per rank within 3 %, scored', share(scored, within(0.03))],
    ['weights per rank within 15 %, scored', share(scored, within(0.15))],
    ['  unscored, known models: within 15 %', share(other, within(0.15))],
    [
      'block size within 1 %, as logged',
      share(
        done.map(({ blocks }) => blocks),
        within(0.01),
      ),
    ],
    [
      'concurrency within 2 %, no figure is wrong',
      share(
        asks.map((off) => off ?? Number.NaN),
        within(0.02),
      ),
    ],
    ['  of models whose config tells what they are', share(asks, within(0.02))],
    ['outcome right, unknown counted as wrong', share(asked.map(isRight), Boolean)],
    ['  where the memory was said (--memory)', share(asked.filter(hasMemory).map(isRight), Boolean)],
    [
      '  and the config tells what the model is',
      share(asked.filter((one) => hasMemory(one) && one.knownModel).map(isRight), Boolean),
    ],
    [
      '  may boot',
      share(
        asked.map(({ verdict }) => verdict),
        (verdict) => verdict === 'may boot',
      ),
    ],
    [
      '  unknown',
      share(
        asked.map(({ verdict }) => verdict),
        (verdict) => verdict === 'unknown',
      ),
    ],
    [
      '  right without may boot',
      share(
        known.filter(({ verdict }) => verdict !== 'may boot').map(({ exact }) => exact),
        Boolean,
      ),
    ],
    ['wedged a host and called fits', `${done.filter(({ wedgedAndFits }) => wedgedAndFits).length}`],
    [
      'error bar covers the weights',
      share(
        done.map(({ weightsInBar }) => weightsInBar),
        Boolean,
      ),
    ],
    [
      'error bar covers the cache',
      share(
        done.map(({ cacheInBar }) => cacheInBar),
        Boolean,
      ),
    ],
  ];
  console.log(`\n${title}`);
  for (const [name, value] of rows) console.log(`  ${name.padEnd(44)} ${value}`);
}

/** All at once would be slower than a few at a time. */
async function each(list, work) {
  const results = [];
  let next = 0;
  const lanes = Array.from({ length: Math.min(4, availableParallelism()) }, async () => {
    while (next < list.length) {
      const at = next++;
      results[at] = await work(list[at]);
    }
  });
  await Promise.all(lanes);
  return results;
}

const seen = await each(
  cases.filter((_, index) => !held(index)),
  judge,
);
const kept = seenAlone
  ? []
  : await each(
      cases.filter((_, index) => held(index)),
      judge,
    );
if (byCase) {
  const percent = (value) => (value === undefined ? '' : `${(100 * value).toFixed(1)} %`);
  for (const one of seen)
    console.log(
      [
        one.one.id.padEnd(40),
        `w ${percent(one.weights?.off)}${one.weights?.scored === false ? ' (unscored)' : ''}`.padEnd(22),
        `c ${percent(one.concurrency?.off)}`.padEnd(12),
        `b ${percent(one.blocks)}`.padEnd(10),
        one.cacheOff === undefined ? '' : `cache ${one.cacheOff}`.padEnd(22),
        (one.outcome ?? '').padEnd(16),
        one.verdict?.padEnd(13),
        one.right === false ? 'WRONG' : '',
        one.why ?? '',
      ].join(' '),
    );
}
const figures = await each(FIGURES, async (figure) => {
  const [, , , key, real] = figure;
  const mine = (await ask(figureFlags(figure)))?.ranks[0][key];
  return mine == null ? Number.NaN : mine / real - 1;
});
console.log(
  `Cache, state and block against ${FIGURES.length} figures of the formulas: within 1 % ${share(figures, within(0.01))}`,
);
if (byCase)
  for (const [index, [model, , , key]] of FIGURES.entries())
    console.log(`  ${model} ${key} ${(100 * figures[index]).toFixed(2)} %`);
summary('Cases seen (position, counted from 1, not divisible by 4)', seen);
if (!seenAlone) summary('Cases held back (position divisible by 4), sums alone', kept);
if ([...seen, ...kept].some(({ failed }) => failed)) process.exitCode = 1;
