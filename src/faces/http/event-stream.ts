import type { ServerResponse } from 'node:http';
import type { Desk } from './desk.ts';
import type { Frame } from './tails.ts';

export type StreamOptions = {
  readonly run: string;
  readonly afterSeq: number;
  /** Beside the events: what else the page shows, told by event type. */
  readonly channels: readonly Channel[];
};

/** The newest state of something, sent when it changed and the connection takes it; what was passed over is counted. */
export type Channel = {
  readonly name: string;
  /** Calls when there may be something new; gives the way to stop it. */
  listen(wake: () => void): () => void;
  /** Number of the newest state, and its text; undefined while there is none. */
  newest(): { readonly number: number; readonly data: () => string } | undefined;
};

const BEAT_MILLISECONDS = 15_000;
/** Who has taken nothing for so long is gone; it comes back with Last-Event-ID. */
const STUCK_MILLISECONDS = 120_000;

/**
 * Server-sent events of one run, `id:` is the event's number. The journal is the buffer: a reader that is slow is
 * written to no faster than it reads, holds no more than one batch here, and slows nobody. Without channels it ends
 * after run-ended.
 */
export function streamEvents(response: ServerResponse, desk: Desk, options: StreamOptions): void {
  const { run, channels } = options;
  let seq = options.afterSeq;
  let batch: Frame[] = [];
  let blocked = false;
  let closed = false;
  let scheduled = false;
  let wroteAt = Date.now();
  const sent = new Map<string, number>();

  response.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  });
  // Waits before a reconnect; the browser's own default is longer in some.
  write('retry: 1000\n\n');
  response.flushHeaders();

  function write(text: string): void {
    wroteAt = Date.now();
    if (response.write(text)) return;
    blocked = true;
    response.once('drain', () => {
      blocked = false;
      pump();
    });
  }

  function pump(): void {
    if (blocked || closed) return;
    // What a batch held back for a slow reader is its whole buffer.
    if (batch.length === 0) batch = [...desk.tails.after(run, seq)];
    const some = batch.length > 0;
    for (let frame = batch.shift(); frame !== undefined; frame = batch.shift()) {
      write(frame.text);
      seq = frame.seq;
      if (blocked && !frame.last) return;
      if (frame.last && channels.length === 0) {
        response.end();
        return;
      }
    }
    if (some) {
      later();
      return;
    }
    for (const channel of channels) {
      if (blocked) return;
      const newest = channel.newest();
      const before = sent.get(channel.name) ?? 0;
      if (newest === undefined || newest.number <= before) continue;
      sent.set(channel.name, newest.number);
      const skipped = before === 0 ? 0 : newest.number - before - 1;
      write(`event: ${channel.name}\ndata: {"skipped":${skipped},"value":${newest.data()}}\n\n`);
    }
  }

  /** The next batch, after others had their turn. */
  function later(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      pump();
    });
  }

  const beat = setInterval(() => {
    if (blocked && Date.now() - wroteAt > STUCK_MILLISECONDS) response.destroy();
    else if (!blocked && Date.now() - wroteAt >= BEAT_MILLISECONDS) write(': beat\n\n');
  }, BEAT_MILLISECONDS);
  const stops = [desk.tails.listen(run, later), ...channels.map((channel) => channel.listen(later))];
  response.once('close', () => {
    closed = true;
    clearInterval(beat);
    for (const stop of stops) stop();
  });
  pump();
}
