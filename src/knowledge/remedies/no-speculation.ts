import { argsOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';
import { withoutFlags } from './set-args.ts';

const OF_SPECULATION =
  /^--(?:spec(?:ulative)?-|num-speculative-tokens$|ngram-prompt-lookup|enable-multi-layer-eagle$)/;

/** Tokens one by one: what drafts and checks them is left out. */
export const noSpeculation: Remedy = {
  name: 'no-speculation',
  causes: ['engine-bug-speculative-decoding'],
  title: () => 'Start without speculative decoding',
  cost: () => 'the same answers, with up to half the speed',
  apply({ recipe, engine }) {
    const args = argsOf(recipe, engine);
    const to = withoutFlags(args, (flag) => OF_SPECULATION.test(flag) || flag === '-sc');
    return to.length === args.length ? undefined : [{ path: `args.${engine}`, from: args, to }];
  },
};
