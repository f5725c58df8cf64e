import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { gibNumber } from '../../../domain/units.ts';
import type { MemoryPicture, Segment, Track } from '../picture/memory.ts';

type Props = {
  readonly picture: MemoryPicture;
  /** Bytes that the full width stands for: the largest total of the nodes shown. */
  readonly scale: number;
  readonly full: boolean;
};

/** A node's memory: who holds it, what can be had, and where the plan would go. */
export function MemoryBar({ picture, scale, full }: Props): JSX.Element {
  const [box, width] = useWidth();
  const at = (bytes: number): number => (bytes / scale) * width;
  if (!picture.seen)
    return (
      <div ref={box} class="unseen-bar">
        {picture.why}
      </div>
    );
  const { segments, track, reserveBytes, totalBytes } = picture;
  const reserve = reserveBytes === undefined ? undefined : at(totalBytes - reserveBytes);
  const below = full ? segments.filter((one) => named(one, at(one.bytes)) === '') : [];
  return (
    <figure class={full ? 'memory full' : 'memory'} ref={box}>
      {full && (
        <div
          class="available"
          style={{
            left: `${at(totalBytes - picture.availableBytes)}px`,
            width: `${at(picture.availableBytes)}px`,
          }}
        >
          <span>
            available <b>{gibNumber(picture.availableBytes)} GiB</b>
          </span>
        </div>
      )}
      <Segments segments={segments} at={at} full={full} node={picture.node} />
      {reserve !== undefined && <span class="reserve" style={{ left: `${reserve}px` }} />}
      {track && <TrackBar track={track} at={at} width={width} full={full} />}
      {full && track && (
        <p class="small track-text">
          plan would use <b>{track.text}</b>: {track.verdict}
          {reserveBytes !== undefined && (
            <span class="quiet"> · keep {gibNumber(reserveBytes)} GiB free</span>
          )}
        </p>
      )}
      {full && (below.length > 0 || picture.notes.length > 0) && (
        <p class="small quiet legend">
          {below.map((one) => (
            <span key={one.name}>
              <i class={`swatch ${one.kind}`} />
              {one.name} <b>{gibNumber(one.bytes)}</b>
            </span>
          ))}
          {picture.notes.map((note) => (
            <span key={note} class="wait">
              ! {note}
            </span>
          ))}
        </p>
      )}
      <figcaption class="unseen">{picture.sentence}</figcaption>
    </figure>
  );
}

/** What is written in a segment: its name and size where there is room, else the size, else nothing. */
function named(segment: Segment, width: number): string {
  const size = gibNumber(segment.bytes);
  if (width >= Math.max(118, (segment.name.length + 6) * 7)) return `${segment.name} ${size}`;
  return width >= 64 && segment.kind !== 'system' && segment.kind !== 'unaccounted' ? size : '';
}

/** One tab stop: arrow keys go from part to part. */
function Segments({
  segments,
  at,
  full,
  node,
}: {
  readonly segments: readonly Segment[];
  readonly at: (bytes: number) => number;
  readonly full: boolean;
  readonly node: string;
}): JSX.Element {
  const [open, setOpen] = useState<number | undefined>(undefined);
  const [stop, setStop] = useState(0);
  const group = useRef<HTMLDivElement>(null);
  const go = (to: number): void => {
    const next = Math.max(0, Math.min(segments.length - 1, to));
    setStop(next);
    const button = group.current?.children[next];
    if (button instanceof HTMLElement) button.focus();
  };
  const shown = open === undefined ? undefined : segments[open];
  return (
    <div class="bar-box" onPointerLeave={() => setOpen(undefined)}>
      <div
        class="segments"
        role="group"
        aria-label={`Memory of ${node}`}
        ref={group}
        onKeyDown={(event) => {
          if (event.key === 'ArrowRight') go(stop + 1);
          else if (event.key === 'ArrowLeft') go(stop - 1);
          else if (event.key === 'Escape') setOpen(undefined);
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        {segments.map((one, index) => (
          <button
            key={one.name}
            type="button"
            class={`segment ${one.kind}${one.going ? ' going' : ''}`}
            style={{ left: `${at(one.from)}px`, width: `${Math.max(1, at(one.bytes) - 1)}px` }}
            tabIndex={index === Math.min(stop, segments.length - 1) ? 0 : -1}
            aria-label={`${one.name} ${gibNumber(one.bytes)} GiB${one.going ? ', would be stopped' : ''}. ${one.detail.join('. ')}`}
            onFocus={() => {
              setStop(index);
              setOpen(index);
            }}
            onBlur={() => setOpen(undefined)}
            onPointerEnter={() => setOpen(index)}
          >
            {full ? <span>{named(one, at(one.bytes))}</span> : null}
          </button>
        ))}
      </div>
      {shown && (
        <div
          class="hover-card small"
          style={{ left: `${Math.max(0, Math.min(at(shown.from), at(1e15)))}px` }}
        >
          <b>
            {shown.name} {gibNumber(shown.bytes)} GiB
          </b>
          {shown.detail.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
      )}
    </div>
  );
}

function TrackBar({
  track,
  at,
  width,
  full,
}: {
  readonly track: Track;
  readonly at: (bytes: number) => number;
  readonly width: number;
  readonly full: boolean;
}): JSX.Element {
  let from = track.from;
  const end = at(track.from + track.sumBytes);
  const error = at(track.errorBytes);
  return (
    <svg class="track" width={width} height={full ? 12 : 3} aria-hidden="true">
      {full && <rect class="stays" x="0.5" y="3.5" width={Math.max(0, at(track.from) - 1)} height="5" />}
      {track.parts.map((part, index) => {
        const x = at(from);
        from += part.bytes;
        return (
          <rect
            key={part.name}
            class={`part part-${index}`}
            x={x}
            y="0"
            width={Math.max(0, Math.min(width, at(from)) - x - (full ? 1 : 0))}
            height={full ? 12 : 3}
          />
        );
      })}
      {full && end <= width && (
        <path
          class="whisker"
          d={`M${end - error} 6H${Math.min(width - 1, end + error)}M${end - error} 2v8M${Math.min(width - 1, end + error)} 2v8`}
        />
      )}
      {end > width && <path class="whisker" d={`M${width - 6} 1l5 5-5 5`} />}
    </svg>
  );
}

function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(0);
  const seen = useRef<ResizeObserver | undefined>(undefined);
  useEffect(() => () => seen.current?.disconnect(), []);
  const [attach] = useState(() => (element: HTMLElement | null): void => {
    seen.current?.disconnect();
    if (!element) return;
    seen.current = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    seen.current.observe(element);
    setWidth(Math.floor(element.clientWidth));
  });
  return [attach, width];
}
