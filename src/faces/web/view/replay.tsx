import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Event } from '../../../domain/event.ts';
import { stopwatch } from '../../../domain/units.ts';
import type { Page, PageStore } from '../data/page.ts';

const MARKS: Readonly<Record<string, string>> = {
  'rank-started': '│',
  finding: '✕',
  'remedy-proved': '✓',
  'consent-asked': '◐',
  serving: '✓',
};

const SPEEDS = [1, 8, 60] as const;

/** Back in time over the same events: a slider with marks, and play. Nothing here changes a host. */
export function Replay({
  page,
  store,
}: {
  readonly page: Page;
  readonly store: PageStore;
}): JSX.Element | null {
  const [speed, setSpeed] = useState<number>(8);
  const [playing, setPlaying] = useState(false);
  const { events, address, live } = page;
  const at = address.at;
  const index = at === undefined ? -1 : (events ?? []).findLastIndex((event) => event.seq <= at);
  useEffect(() => {
    if (!playing || events === undefined || index < 0) return undefined;
    const here = events[index];
    const next = events[index + 1];
    if (here === undefined || next === undefined) {
      setPlaying(false);
      return undefined;
    }
    const pause = Math.min(5000, (Date.parse(next.at) - Date.parse(here.at)) / speed);
    const timer = setTimeout(() => store.refine({ at: next.seq }), Math.max(16, pause));
    return () => clearTimeout(timer);
  }, [playing, index, speed, events]);

  if (live.run === '') return null;
  if (at === undefined)
    return (
      <button type="button" class="chip" onClick={() => store.refine({ run: live.run, at: live.lastSeq })}>
        ⟲ replay
      </button>
    );
  if (events === undefined) return <p class="small quiet">Reading run {live.run} …</p>;
  const here = events[Math.max(0, index)];
  const began = Date.parse(events[0]?.at ?? '');
  const word = here ? `${stopwatch(Date.parse(here.at) - began)}, ${spoken(here)}` : '';
  const go = (to: number): void => {
    const event = events[Math.max(0, Math.min(events.length - 1, to))];
    if (event) store.refine({ at: event.seq });
  };
  return (
    <div class="replay" role="group" aria-label="Replay">
      <button type="button" class="chip" aria-pressed={playing} onClick={() => setPlaying(!playing)}>
        {playing ? 'pause' : 'play'}
      </button>
      <select
        class="small"
        aria-label="Speed"
        value={String(speed)}
        onChange={({ currentTarget }) => setSpeed(Number(currentTarget.value))}
      >
        {SPEEDS.map((one) => (
          <option key={one} value={String(one)}>
            {one} ×
          </option>
        ))}
      </select>
      <div class="slider">
        <div class="marks" aria-hidden="true">
          {events.flatMap((event, position) =>
            MARKS[event.type] === undefined
              ? []
              : [
                  <i
                    key={event.seq}
                    style={{ left: `${(position / Math.max(1, events.length - 1)) * 100}%` }}
                  >
                    {MARKS[event.type]}
                  </i>,
                ],
          )}
        </div>
        <input
          type="range"
          min={0}
          max={Math.max(0, events.length - 1)}
          value={Math.max(0, index)}
          aria-label="Moment of the run"
          aria-valuetext={word}
          onInput={({ currentTarget }) => go(Number(currentTarget.value))}
        />
      </div>
      <span class="small quiet">{word}</span>
      <button type="button" class="chip" onClick={() => store.refine({ at: undefined })}>
        Back to live
      </button>
    </div>
  );
}

function spoken(event: Event): string {
  if (event.type === 'finding' || event.type === 'rank-started')
    return `${event.type.replace('-', ' ')} on ${event.node ?? 'no node'}`;
  return event.type.replaceAll('-', ' ');
}
