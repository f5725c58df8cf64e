import type { Stage } from '../domain/finding.ts';

/** When, as it stands behind what happened: "ended while loading weights". */
export const DURING: Readonly<Record<Stage, string>> = {
  start: 'at the start',
  rendezvous: 'in the rendezvous',
  weights: 'while loading weights',
  kv: 'while sizing the KV cache',
  graphs: 'while capturing graphs',
  warmup: 'in the warm-up',
  serving: 'while serving',
};
