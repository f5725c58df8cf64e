/** One scrape of an engine's /metrics: sums over all label sets, and histograms as cumulative buckets by bound. */
export type EngineScrape = {
  readonly running: number | undefined;
  readonly waiting: number | undefined;
  /** 0 to 1. */
  readonly kvUsed: number | undefined;
  readonly outputTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly firstToken: Histogram | undefined;
  readonly betweenTokens: Histogram | undefined;
};

/** Upper bound in seconds → observations at or under it since the engine's start; Infinity holds all. */
export type Histogram = ReadonlyMap<number, number>;

type Names = Readonly<Record<keyof EngineScrape, readonly string[]>>;

/** SGLang and vLLM, as facts of 2026-11; older vLLM calls the time between tokens otherwise. */
const NAMES: Names = {
  running: ['sglang:num_running_reqs', 'vllm:num_requests_running'],
  waiting: ['sglang:num_queue_reqs', 'vllm:num_requests_waiting'],
  kvUsed: ['sglang:token_usage', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  outputTokens: ['sglang:generation_tokens_total', 'vllm:generation_tokens_total'],
  promptTokens: ['sglang:prompt_tokens_total', 'vllm:prompt_tokens_total'],
  firstToken: ['sglang:time_to_first_token_seconds', 'vllm:time_to_first_token_seconds'],
  betweenTokens: [
    'sglang:inter_token_latency_seconds',
    'vllm:inter_token_latency_seconds',
    'vllm:time_per_output_token_seconds',
  ],
};

type Line = { readonly name: string; readonly labels: string; readonly value: number };

/** Reads Prometheus' text form; lines that are none are passed over, and what is not told stays undefined. */
export function readScrape(text: string): EngineScrape {
  const lines = text.split('\n').flatMap(readLine);
  const gauge = (key: keyof EngineScrape): number | undefined => {
    const found = lines.filter(({ name }) => NAMES[key].includes(name));
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
  };
  const share = lines.filter(({ name }) => NAMES.kvUsed.includes(name)).map(({ value }) => value);
  return {
    running: gauge('running'),
    waiting: gauge('waiting'),
    // Several engines behind one port have one each; the fullest is what matters.
    kvUsed: share.length === 0 ? undefined : Math.max(...share),
    outputTokens: gauge('outputTokens'),
    promptTokens: gauge('promptTokens'),
    firstToken: histogram(lines, NAMES.firstToken),
    betweenTokens: histogram(lines, NAMES.betweenTokens),
  };
}

/** Seconds under which that share of the observations between two scrapes lay; undefined where there were none. */
export function quantileBetween(
  before: Histogram | undefined,
  after: Histogram | undefined,
  share: number,
): number | undefined {
  if (before === undefined || after === undefined) return undefined;
  const bounds = [...after.keys()].sort((a, b) => a - b);
  // An engine that was started anew counts from nothing.
  const counts = bounds.map((bound) => (after.get(bound) ?? 0) - (before.get(bound) ?? 0));
  const all = counts.at(-1) ?? 0;
  if (all <= 0 || counts.some((count) => count < 0)) return undefined;
  const wanted = all * share;
  const at = counts.findIndex((count) => count >= wanted);
  const high = bounds[at];
  const low = at > 0 ? (bounds[at - 1] ?? 0) : 0;
  if (high === undefined) return undefined;
  // Above the last bound nothing finer is known than that bound.
  if (high === Number.POSITIVE_INFINITY) return low;
  const under = at > 0 ? (counts[at - 1] ?? 0) : 0;
  const inside = (counts[at] ?? 0) - under;
  return inside <= 0 ? high : low + ((wanted - under) / inside) * (high - low);
}

function histogram(lines: readonly Line[], names: readonly string[]): Histogram | undefined {
  const buckets = new Map<number, number>();
  for (const { name, labels, value } of lines) {
    if (!name.endsWith('_bucket') || !names.includes(name.slice(0, -'_bucket'.length))) continue;
    const bound = /(?:^|,)\s*le="([^"]+)"/.exec(labels)?.[1];
    if (bound === undefined) continue;
    const key = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
    if (!Number.isNaN(key)) buckets.set(key, (buckets.get(key) ?? 0) + value);
  }
  return buckets.size === 0 ? undefined : buckets;
}

function readLine(text: string): readonly Line[] {
  const [, name = '', labels = '', number = ''] =
    /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\d+)?\s*$/.exec(text) ?? [];
  const value = Number(number);
  return name === '' || !Number.isFinite(value) ? [] : [{ name, labels, value }];
}
