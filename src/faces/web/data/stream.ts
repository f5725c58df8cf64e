import type { Event } from '../../../domain/event.ts';

/** What one stream of a run brings. */
export type StreamHandlers = {
  readonly event: (event: Event) => void;
  readonly beat: (node: string, availableBytes: number | undefined) => void;
  /** New log lines are there: how many rows the run has now. */
  readonly lines: (count: number) => void;
  readonly state: (state: 'live' | 'lost') => void;
};

/** Follows a run from after an event; the browser comes back by itself with the last id it saw. */
export function follow(run: string, afterSeq: number, on: StreamHandlers): () => void {
  const source = new EventSource(`/api/runs/${encodeURIComponent(run)}/stream?after=${afterSeq}`);
  source.addEventListener('open', () => on.state('live'));
  source.addEventListener('error', () => on.state('lost'));
  source.addEventListener('event', (message) => {
    on.event(JSON.parse(message.data));
  });
  source.addEventListener('beat', (message) => {
    const beat: { readonly node: string; readonly availableBytes?: number } = JSON.parse(message.data);
    on.beat(beat.node, beat.availableBytes);
  });
  source.addEventListener('lines', (message) => {
    const { count }: { readonly count: number } = JSON.parse(message.data);
    on.lines(count);
  });
  return () => source.close();
}
