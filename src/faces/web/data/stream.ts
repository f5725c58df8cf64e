import type { Event } from '../../../domain/event.ts';
import type { NodeFacts } from '../../../domain/facts.ts';
import type { LogWindow } from '../../../domain/log-rows.ts';

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

/**
 * Follows a run from after an event; the browser comes back by itself with the last id it saw. While nobody sees the
 * page only the events come: no node is looked at for it, and no log is read.
 */
export function follow(run: string, afterSeq: number, on: StreamHandlers): () => void {
  let seq = afterSeq;
  let source = open();

  function open(): EventSource {
    const seen = document.hidden ? '' : '&with=ledger,log';
    const made = new EventSource(`/api/runs/${encodeURIComponent(run)}/events?after=${seq}${seen}`);
    made.addEventListener('open', () => on.state('live'));
    made.addEventListener('error', () => {
      // The stream of events alone ends with the run.
      if (!document.hidden) on.state('lost');
    });
    made.addEventListener('event', (message) => {
      seq = Math.max(seq, Number(message.lastEventId) || 0);
      on.event(JSON.parse(message.data));
    });
    made.addEventListener('ledger', (message) => on.ledger(JSON.parse(message.data).value));
    made.addEventListener('log', (message) => on.log(JSON.parse(message.data).value));
    made.addEventListener('runs', (message) => on.newest(JSON.parse(message.data).value.newest));
    return made;
  }

  const turned = (): void => {
    source.close();
    source = open();
  };
  document.addEventListener('visibilitychange', turned);
  return () => {
    document.removeEventListener('visibilitychange', turned);
    source.close();
  };
}
