import type { Fit, FitRank, FitRule } from '../../domain/fit.ts';
import { gib, thousands } from '../../domain/units.ts';
import { changesFor } from './changes.ts';
import { derivedRules } from './derived-rules.ts';
import { type Evaluation, evaluate } from './evaluate.ts';
import { perRank } from './host-memory.ts';
import type { FitInput } from './input.ts';

/**
 * Whether a model fits a layout on an engine, and every number behind it: a pure function. Nothing that is not known
 * becomes a number; the bound of a model that is not known is told apart.
 */
export function fitOf(input: FitInput): Fit {
  const found = evaluate(input);
  const { needsBytes, hasBytes } = found.startCheck;
  const { assumed } = found.numbers;
  return {
    verdict: found.verdict,
    why: found.why,
    ranks: ranksOf(input, found),
    startCheck: {
      needsBytes: whole(needsBytes),
      hasBytes: whole(hasBytes),
      passes: needsBytes === undefined || hasBytes === undefined ? null : hasBytes >= needsBytes,
    },
    checks: found.checks.map((check) => ({
      ...check,
      marginBytes: Math.round(check.marginBytes),
      errorBytes: Math.round(check.errorBytes),
    })),
    assumed: {
      context: whole(assumed.context),
      sequences: assumed.sequences,
      fraction: assumed.fraction,
      batchedTokens: assumed.batchedTokens,
    },
    bound: boundOf(input),
    changes: found.verdict === 'fits' || found.verdict === 'unknown' ? [] : changesFor(input),
    rules: rulesOf(input, found),
  };
}

function ranksOf({ layout, engine, nodeNames }: FitInput, found: Evaluation): readonly FitRank[] {
  const world = layout.tensor * layout.pipeline * (engine === 'vllm' ? layout.data : 1);
  const perNode = Math.max(1, Math.ceil(world / layout.nodes));
  return Array.from({ length: Math.min(world, 4096) }, (_, rank): FitRank => {
    const stage = Math.floor((rank % (layout.tensor * layout.pipeline)) / layout.tensor);
    const result = found.stages[stage];
    const at = Math.floor(rank / perNode);
    const numbers = result?.numbers;
    return {
      node: nodeNames?.[at] ?? `node-${at + 1}`,
      rank,
      weightsBytes: whole(numbers?.weightsBytes),
      kvBytesPerToken: whole(numbers?.cache?.bytesPerToken),
      stateBytesPerSequence: whole(numbers?.cache?.stateBytes),
      overheadBytes: whole(numbers?.overhead.bytes),
      peakBytes: whole(result?.peakBytes),
      poolTokens: whole(result?.poolTokens),
      blockTokens: whole(result?.blockTokens),
      maxConcurrency:
        result?.maxConcurrency === undefined ? null : Math.round(result.maxConcurrency * 1000) / 1000,
    };
  });
}

/** Files over ranks, for a model whose parts are not known: what a kernel pads and what is not loaded lies between. */
function boundOf({ model, layout }: FitInput): Fit['bound'] {
  if (model.architecture !== undefined || model.fileBytes === undefined) return null;
  const share = model.fileBytes / (layout.tensor * layout.pipeline);
  return {
    atLeastBytes: Math.round(share * 0.5),
    atMostBytes: Math.round(Math.min(model.fileBytes, share * 1.4)),
  };
}

function rulesOf(input: FitInput, found: Evaluation): readonly FitRule[] {
  const { assumed, stages } = found.numbers;
  const { engine, settings, model } = input;
  const cache = stages[0]?.cache;
  const extra: FitRule[] = [];
  const say = (about: string, rule: string, errorBytes: number | null = null): number =>
    extra.push({ about, rule, errorBytes });
  if (model.architecture === undefined) say('weights', model.rule);
  if (settings.fraction === undefined || input.fractionFrom !== undefined)
    say(
      'fraction',
      `${Math.round(assumed.fraction * 1e4) / 1e4}, ${input.fractionFrom ?? (engine === 'vllm' ? "vLLM's default" : 'as SGLang works it out by itself')}`,
    );
  if (input.context === undefined && assumed.context !== undefined)
    say('context', `${thousands(assumed.context)} tokens, the model's own limit`);
  if (input.sequences === undefined)
    say('sequences', `${thousands(assumed.sequences)}, the engine's default`);
  if (settings.batchedTokens === undefined)
    say('batched tokens', `${thousands(assumed.batchedTokens)}, the engine's default`);
  if (cache !== undefined)
    say(
      'cache',
      cache.kinds
        .map((kind) =>
          kind.name === 'state'
            ? `${kind.layers} layers of state, ${thousands(Math.round(kind.slotBytes))} bytes per slot each`
            : `${Math.round(kind.layers * 10) / 10} ${kind.name} layers, ${thousands(Math.round(kind.tokenBytes))} bytes per token each${kind.window === undefined ? '' : `, at most ${kind.window} tokens and a step`}`,
        )
        .join('; '),
      // Arithmetic, exact to the byte, unless the type is not known: then its own rule has the bar.
      found.numbers.cacheError === 0 ? 0 : null,
    );
  if (perRank(input.memory.availableBytes, input) === undefined && input.memory.totalBytes !== undefined)
    say('free memory', 'not said; taken as a clean host has it');
  if (input.memory.ownBytes !== undefined)
    say(
      'free memory',
      `${gib(input.memory.ownBytes)} of it is held by this recipe's own ranks, which run now`,
    );
  if (settings.availableKvBytes !== undefined) say('cache', 'what the cache gets was given');
  if (engine === 'sglang' && cache !== undefined && cache.stateBytes > 0)
    say(
      'state',
      'three slots per request with the radix cache; some cache strategies keep four or five, and so fewer requests',
    );
  return [...found.numbers.rules, ...extra, ...derivedRules(input, found)];
}

function whole(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Math.round(value);
}
