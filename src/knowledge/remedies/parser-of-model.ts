import type { Remedy } from './remedy.ts';
import { setArgs } from './set-args.ts';

/** The reasoning parser that belongs to the model's type; none where that was in use. */
export const reasoningParser: Remedy = {
  name: 'reasoning-parser',
  causes: ['reasoning-parser-mismatch'],
  title: ({ recipe }) =>
    recipe.serve.reasoning === 'auto'
      ? 'Start without a reasoning parser'
      : "Take the reasoning parser of the model's type",
  cost: ({ recipe }) =>
    recipe.serve.reasoning === 'auto' ? 'what the model thinks stands in its answer' : 'nothing',
  apply({ recipe, engine }) {
    const own = setArgs(recipe, engine, { '--reasoning-parser': undefined });
    const from = recipe.serve.reasoning;
    // One of the recipe's args overrides the key: it goes first.
    if (own !== undefined) return own;
    return from === 'none'
      ? undefined
      : [{ path: 'serve.reasoning', from, to: from === 'auto' ? 'none' : 'auto' }];
  },
};

/** The tool parser that belongs to the model's type; none where that was in use and does not fit. */
export const toolParser: Remedy = {
  name: 'tool-parser',
  causes: ['tool-parser-not-enabled', 'tool-parser-mismatch'],
  title: ({ recipe }) =>
    recipe.serve.tools === 'auto'
      ? 'Start without a tool parser'
      : "Take the tool parser of the model's type",
  cost: ({ recipe }) =>
    recipe.serve.tools === 'auto' ? 'tool calls stand in the answer as text' : 'nothing',
  apply({ recipe, engine, finding }) {
    const own = setArgs(recipe, engine, {
      '--tool-call-parser': undefined,
      '--enable-auto-tool-choice': undefined,
    });
    const from = recipe.serve.tools;
    // Whoever turned tools on by hand wants them: the model's own parser comes in the place of none.
    if (own !== undefined)
      return from === 'none' && finding.cause === 'tool-parser-not-enabled'
        ? [...own, { path: 'serve.tools', from, to: 'auto' }]
        : own;
    if (from !== 'auto') return [{ path: 'serve.tools', from, to: 'auto' }];
    return finding.cause === 'tool-parser-mismatch' ? [{ path: 'serve.tools', from, to: 'none' }] : undefined;
  },
};
