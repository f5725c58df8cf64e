import { describe, expect, it } from 'vitest';
import { quantileBetween, readScrape } from '../../src/knowledge/engines/metrics.ts';

/** As vLLM's /metrics looks: two label sets, a histogram, comments. */
function vllm(counts: readonly number[], tokens: number): string {
  const bounds = ['0.1', '0.25', '0.5', '1.0', '+Inf'];
  const label = 'engine="0",model_name="Qwen/Qwen3, \\"x\\""';
  return [
    '# HELP vllm:num_requests_running Number of requests in model execution batches.',
    '# TYPE vllm:num_requests_running gauge',
    `vllm:num_requests_running{${label}} 2.0`,
    'vllm:num_requests_running{engine="1",model_name="m"} 1.0',
    `vllm:num_requests_waiting{${label}} 0.0`,
    `vllm:kv_cache_usage_perc{${label}} 0.25`,
    'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5',
    `vllm:generation_tokens_total{${label}} ${tokens}.0`,
    ...bounds.map(
      (bound, at) => `vllm:time_to_first_token_seconds_bucket{${label},le="${bound}"} ${counts[at]}.0`,
    ),
    `vllm:time_to_first_token_seconds_count{${label}} ${counts.at(-1)}.0`,
    `vllm:time_to_first_token_seconds_sum{${label}} 1.5`,
    'python_gc_objects_collected_total{generation="0"} NaN',
    'not a line of it',
    '',
  ].join('\n');
}

describe("an engine's own numbers", () => {
  it('are summed over its engines, the fullest cache counting, and absent where it does not tell them', () => {
    const scrape = readScrape(vllm([0, 0, 0, 0, 0], 700));
    expect(scrape).toMatchObject({ running: 3, waiting: 0, kvUsed: 0.5, outputTokens: 700 });
    expect(scrape.betweenTokens).toBeUndefined();
    expect(scrape.promptTokens).toBeUndefined();
    expect(readScrape('<html>404</html>').running).toBeUndefined();
    expect(
      readScrape('sglang:num_running_reqs{model_name="m",tp_rank="0"} 4\nsglang:token_usage 0.1\n'),
    ).toMatchObject({
      running: 4,
      kvUsed: 0.1,
    });
  });

  it('give quantiles of what came between two looks, not since the start', () => {
    const before = readScrape(vllm([100, 100, 100, 100, 100], 0)).firstToken;
    const after = readScrape(vllm([100, 104, 108, 109, 110], 0)).firstToken;
    // Of ten: four up to 0.25 s, four up to 0.5, one up to 1, one above.
    expect(quantileBetween(before, after, 0.4)).toBeCloseTo(0.25);
    expect(quantileBetween(before, after, 0.5)).toBeCloseTo(0.3125);
    expect(quantileBetween(before, after, 0.9)).toBeCloseTo(1);
    expect(quantileBetween(before, after, 0.95)).toBe(1);
  });

  it('give none where nothing was asked in between, or the engine began anew', () => {
    const some = readScrape(vllm([5, 5, 5, 5, 5], 0)).firstToken;
    const fewer = readScrape(vllm([1, 1, 1, 1, 1], 0)).firstToken;
    expect(quantileBetween(some, some, 0.5)).toBeUndefined();
    expect(quantileBetween(some, fewer, 0.5)).toBeUndefined();
    expect(quantileBetween(undefined, some, 0.5)).toBeUndefined();
  });
});
