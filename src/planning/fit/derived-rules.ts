import type { FitCheck, FitRule } from '../../domain/fit.ts';
import { gib, plural, thousands } from '../../domain/units.ts';
import type { Evaluation } from './evaluate.ts';
import type { FitInput } from './input.ts';

/**
 * The rules of the figures that follow from weights, overhead and cache: block, pool, concurrency, peak, the load and
 * the start check, each with the bytes by which what it stands on may be off.
 */
export function derivedRules(
  { engine, settings, sequences }: FitInput,
  found: Evaluation,
): readonly FitRule[] {
  const { assumed, stages } = found.numbers;
  const first = found.stages[0];
  const vllm = engine === 'vllm';
  const rules: FitRule[] = [];
  const barOf = (name: FitCheck['name']): number | null => {
    const bars = found.checks.flatMap((check) => (check.name === name ? [Math.round(check.errorBytes)] : []));
    return bars.length === 0 ? null : Math.max(...bars);
  };
  const pool = barOf(vllm ? 'cache' : 'start');
  const say = (about: string, rule: string, errorBytes: number | null): number =>
    rules.push({ about, rule, errorBytes });
  if (first?.blockTokens !== undefined)
    say(
      'block',
      blockRule(first.blockTokens, settings.blockSize, vllm ? (stages[0]?.cache?.stateBytes ?? 0) : 0),
      0,
    );
  if (first?.poolTokens !== undefined)
    say(
      'pool',
      vllm
        ? 'tokens are concurrency times context, as vLLM prints since June 2026; before it counted pages'
        : 'tokens that what the weights leave holds, on the stage with the fewest',
      pool,
    );
  if (first?.maxConcurrency !== undefined && assumed.context !== undefined)
    say(
      'concurrency',
      vllm
        ? `pages of the pool over those that one request of ${thousands(assumed.context)} tokens takes, on the stage with the fewest`
        : `tokens of the pool over ${thousands(assumed.context)}${sequences === undefined ? '' : `, and ${thousands(sequences)} at most`}`,
      pool,
    );
  const peak = Math.max(0, ...found.stages.map(({ peakBytes }) => peakBytes ?? 0));
  if (peak > 0)
    say(
      'peak',
      `weights, overhead and the cache of the fullest rank, ${gib(peak)}; what the host keeps beside them is a check of its own`,
      Math.round(Math.max(...stages.map(({ overhead }) => overhead.errorBytes))),
    );
  const load = found.checks.find(({ name }) => name === 'load');
  if (load !== undefined) say('load', load.what, Math.round(load.errorBytes));
  if (found.startCheck.needsBytes !== undefined)
    say(
      'start check',
      vllm
        ? `vLLM wants ${Math.round(assumed.fraction * 1e4) / 1e4} of the total to be free`
        : `weights, and what a fraction of ${Math.round(assumed.fraction * 1e4) / 1e4} leaves free`,
      barOf('start'),
    );
  return rules;
}

function blockRule(tokens: number, given: number | undefined, stateBytes: number): string {
  if (stateBytes > 0 && tokens !== given)
    return `${thousands(tokens)} tokens, so that a page of attention holds one layer's state`;
  return `${plural(tokens, 'token')}, ${given === undefined ? "the engine's default" : 'as given'}`;
}
