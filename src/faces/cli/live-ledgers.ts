import { beatOnto, type Ledger, ledgerOf } from '../../domain/ledger.ts';
import type { RunState } from '../../domain/run-state.ts';
import type { LiveState } from './live-state.ts';

/** Each node's ledger of the last look, moved on by its beats; and the total that the full width of a bar stands for. */
export function liveLedgers(
  state: RunState,
  live: LiveState,
): { readonly ledgers: ReadonlyMap<string, Ledger | undefined>; readonly scaleBytes: number } {
  const ranks = state.attempts.at(-1)?.ranks ?? [];
  const ledgers = new Map(
    state.nodes.map((node) => {
      const ledger = ledgerOf(state.facts.find((facts) => facts.node === node));
      const runs = ranks.some((rank) => rank.node === node && !rank.ended);
      return [node, ledger ? beatOnto(ledger, live.beats.get(node), runs) : undefined];
    }),
  );
  return {
    ledgers,
    scaleBytes: Math.max(1, ...[...ledgers.values()].map((ledger) => ledger?.totalBytes ?? 0)),
  };
}
