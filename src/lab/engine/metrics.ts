import type { Served } from './api.ts';

/** /metrics in Prometheus' text form, with the names both engines document. Pure. */
export function metricsText(served: Pick<Served, 'engine' | 'names' | 'kvTokens' | 'generator'>): string {
  const { generator } = served;
  const labels = `{model_name="${served.names[0] ?? ''}"}`;
  const line = (name: string, kind: 'gauge' | 'counter', value: number): string =>
    `# HELP ${name} ${name.replace(/^.*:/, '').replaceAll('_', ' ')}\n# TYPE ${name} ${kind}\n${name}${labels} ${value}\n`;
  if (served.engine === 'sglang')
    return [
      line('sglang:num_running_reqs', 'gauge', generator.running),
      line('sglang:num_queue_reqs', 'gauge', 0),
      line('sglang:token_usage', 'gauge', 0),
      line('sglang:max_total_num_tokens', 'gauge', served.kvTokens),
      line('sglang:prompt_tokens_total', 'counter', generator.promptTokens),
      line('sglang:generation_tokens_total', 'counter', generator.completionTokens),
      line('sglang:num_requests_total', 'counter', generator.requests),
    ].join('');
  return [
    line('vllm:num_requests_running', 'gauge', generator.running),
    line('vllm:num_requests_waiting', 'gauge', 0),
    line('vllm:kv_cache_usage_perc', 'gauge', 0),
    line('vllm:prompt_tokens_total', 'counter', generator.promptTokens),
    line('vllm:generation_tokens_total', 'counter', generator.completionTokens),
    line('vllm:request_success_total', 'counter', generator.requests),
  ].join('');
}
