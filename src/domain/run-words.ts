import type { Stage } from './finding.ts';
import type { Plan } from './plan.ts';
import type { RecipeEdit } from './recipe.ts';
import type { RankState } from './run-state.ts';
import { spareOrShort } from './units.ts';

const QUIET_SECONDS = 45;
/** Share of a stage's limit from which silence is shown. */
const QUIET_SHARE = 0.35;

/** The words for stages, as headings and sentences use them. */
export const STAGE_WORDS: Readonly<Record<Stage, string>> = {
  start: 'start',
  rendezvous: 'rendezvous',
  weights: 'weights',
  kv: 'KV cache',
  graphs: 'graphs',
  warmup: 'warm-up',
  serving: 'serving',
};

/** How long a rank has shown no progress and its limit, both in ms; undefined while that is nothing to show. */
export function silence(
  rank: RankState,
  now: number,
): { readonly still: number; readonly limit: number | undefined } | undefined {
  if (rank.ended || rank.stage === 'serving') return undefined;
  const still = now - Date.parse(rank.movedAt);
  const seconds = rank.limits?.[rank.stage];
  const from = seconds === undefined ? QUIET_SECONDS : Math.max(20, seconds * QUIET_SHARE);
  if (still < from * 1000) return undefined;
  return { still, limit: seconds === undefined ? undefined : seconds * 1000 };
}

/** What a person types to allow steps of a run that waits. */
export function consentCommand(run: string, ids: readonly string[]): string {
  return `firstlight consent ${run} ${ids.join(' ')}`;
}

/** `network: engine → auto`; what is new or gone has one side: `context: 65536 (new)`, `context: 65536 (left out)`. */
export function edit(change: RecipeEdit): string {
  const { path, from, to } = change;
  if (from === undefined) return `${path}: ${value(to)} (new)`;
  if (to === undefined) return `${path}: ${value(from)} (left out)`;
  return `${path}: ${value(from)} → ${value(to)}`;
}

function value(thing: unknown): string {
  return typeof thing === 'string' ? thing : JSON.stringify(thing);
}

/** Where its first word is a plain one; names (Qwen/Qwen3.5, SGLang) stay. */
export function lowerFirst(text: string): string {
  return /^[A-Z][a-z]*(?= )/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** "Fits on both nodes with 16.5 GiB to spare" */
export function fitWords(plan: Plan): string {
  const spare = plan.memory.map((node) => ({
    node: node.node,
    bytes: node.canGetAfterClearingBytes - node.sumBytes,
  }));
  const least = spare.toSorted((a, b) => a.bytes - b.bytes)[0];
  const names = plan.memory.map((node) => node.node);
  const worst = plan.memory.find((node) => node.verdict === 'does-not-fit');
  const unknown = plan.memory.find((node) => node.verdict === 'unknown');
  if (worst) {
    const bytes = spare.find((node) => node.node === worst.node)?.bytes ?? 0;
    return `Does not fit on ${worst.node}, ${spareOrShort(Math.min(0, bytes))}`;
  }
  if (unknown || !least) return unknown ? `Whether it fits on ${unknown.node} is unknown` : 'Planned';
  const may = plan.memory.some((node) => node.verdict === 'may-boot');
  return `${may ? 'May boot' : 'Fits'} on ${onEach(names)} with ${spareOrShort(least.bytes)}`;
}

/** "both nodes", "all 8 nodes", or the one node's name. */
export function onEach(nodes: readonly string[]): string {
  if (nodes.length > 2) return `all ${nodes.length} nodes`;
  return nodes.length === 2 ? 'both nodes' : (nodes[0] ?? 'no node');
}
