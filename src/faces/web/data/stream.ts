import type { Event } from '../../../domain/event.ts';
import type { NodeFacts } from '../../../domain/facts.ts';
import type { LogWindow } from './api.ts';

/** What one stream of a run brings. */
export type StreamHandlers = {
  readonly event: (event: Event) => void;
  /** The nodes as they are now. */
  readonly ledger: (look: { readonly at: string; readonly facts: readonly NodeFacts[] }) => void;
  /** The end of the whole log. */
  readonly log: (tail: LogWindow) => void;
  /** Another run began. */
  readonly newest: (run: string) => void;
  readonly state: (state: 'live' | 'lost') => void;
};

/** Follows a run from after an event; the browser comes back by itself with the last id it saw. */
export function follow(run: string, afterSeq: number, on: StreamHandlers): () => void {
  const source = new EventSource(
    `/api/runs/${encodeURIComponent(run)}/events?after=${afterSeq}&with=ledger,log`,
  );
  source.addEventListener('open', () => on.state('live'));
  source.addEventListener('error', () => on.state('lost'));
  source.addEventListener('event', (message) => on.event(JSON.parse(message.data)));
  source.addEventListener('ledger', (message) => on.ledger(JSON.parse(message.data).value));
  source.addEventListener('log', (message) => on.log(JSON.parse(message.data).value));
  source.addEventListener('runs', (message) => on.newest(JSON.parse(message.data).value.newest));
  return () => source.close();
}
