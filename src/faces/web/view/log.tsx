import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { STAGES } from '../../../domain/finding.ts';
import { movesOf } from '../../../domain/log-marks.ts';
import { placeText } from '../../../domain/log-rows.ts';
import { STAGE_WORDS } from '../../../domain/run-words.ts';
import { clock, thousands } from '../../../domain/units.ts';
import type { Page, PageStore } from '../data/page.ts';
import { COLUMNS } from '../picture/timeline.ts';
import { LogPool, type PoolNews } from './log-pool.ts';
import { foldWords } from './log-row.ts';
import { NewLines } from './new-lines.tsx';

const NOTHING: PoolNews = {
  total: 0,
  lines: 0,
  warnings: 0,
  errors: 0,
  following: true,
  unread: 0,
  selected: undefined,
  selectedRow: undefined,
};

type Props = {
  readonly page: Page;
  readonly store: PageStore;
  /** Tells a screen reader of new lines. */
  readonly aloud: boolean;
};

/** All ranks' lines as one log: filtered and searched by the server, never held whole here. */
export function Log({ page, store, aloud }: Props): JSX.Element {
  const box = useRef<HTMLElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const mark = useRef<HTMLParagraphElement>(null);
  const pool = useRef<LogPool | undefined>(undefined);
  const [news, setNews] = useState(NOTHING);
  const [tall, setTall] = useState(false);
  const [raw, setRaw] = useState(false);
  const { address, shown } = page;
  const ranks = [
    ...new Map(shown.attempts.flatMap((attempt) => attempt.ranks).map((rank) => [rank.rank, rank])).values(),
  ];

  useEffect(() => {
    if (!box.current || !inner.current || !canvas.current || !mark.current) return undefined;
    const made = new LogPool(
      { box: box.current, inner: inner.current, strip: canvas.current, mark: mark.current },
      {
        news: setNews,
        opened: (open) => {
          if (open.join() !== store.page.address.open.join()) store.refine({ open });
        },
      },
    );
    pool.current = made;
    const reveal = (event: Event): void => {
      if (event instanceof CustomEvent) void made.reveal(placeText(event.detail));
      box.current?.focus();
    };
    const { current } = box;
    const copy = (event: ClipboardEvent): void => {
      const chosen = getSelection();
      if (chosen === null || chosen.isCollapsed || event.clipboardData === null) return;
      event.clipboardData.setData(
        'text/plain',
        made.rawOf((row) => chosen.containsNode(row, true)),
      );
      event.preventDefault();
    };
    addEventListener('show-line', reveal);
    // The box goes when this does, and these with it.
    current.addEventListener('copy', copy);
    current.addEventListener('click', (event) => onPress(event, made));
    current.addEventListener('keydown', (event) => onKey(event, made, store));
    const act = (event: Event): void => {
      if (event instanceof CustomEvent) doKey(event.detail, made, store);
    };
    addEventListener('log-key', act);
    return () => {
      removeEventListener('show-line', reveal);
      removeEventListener('log-key', act);
    };
  }, []);
  useEffect(() => {
    if (shown.run === '') return;
    void pool.current?.show(
      {
        run: shown.run,
        ranks: address.ranks,
        stage: address.stage,
        attempt: address.attempt,
        level: address.level,
        q: address.q,
      },
      // A fold that was opened meanwhile is in the address, and not yet in what was drawn.
      store.page.address.open,
      {
        started: Date.parse(shown.startedAt ?? '') || 0,
        quoted: quotesOf(page),
        raw,
        moves: movesOf(shown, address),
      },
    );
  }, [shown.run, address, shown.attempts, raw]);
  useEffect(() => {
    if (page.logEnd) pool.current?.grew(page.logEnd);
  }, [page.logEnd]);

  return (
    <section class={tall ? 'panel log-panel tall' : 'panel log-panel'} id="log" aria-labelledby="log-head">
      <div class="head wrap">
        <h2 id="log-head" tabIndex={-1}>
          Log
        </h2>
        {ranks.map((rank) => (
          <button
            key={rank.rank}
            type="button"
            class="chip of-rank"
            aria-pressed={address.ranks.length === 0 || address.ranks.includes(rank.rank)}
            onClick={() =>
              store.refine({
                ranks: toggled(
                  address.ranks,
                  rank.rank,
                  ranks.map((one) => one.rank),
                ),
              })
            }
          >
            <i class={`gutter rank-${rank.rank % 4}`} /> {rank.rank} {rank.node}
          </button>
        ))}
        <select
          class="small"
          aria-label="Stage"
          value={address.stage ?? ''}
          onChange={({ currentTarget }) => store.refine({ stage: currentTarget.value || undefined })}
        >
          <option value="">all stages</option>
          {COLUMNS.map((stage) => (
            <option key={stage} value={stage}>
              {STAGE_WORDS[stage]}
            </option>
          ))}
        </select>
        <button
          type="button"
          class="chip"
          aria-pressed={address.level === 'warning'}
          onClick={() => store.refine({ level: address.level === 'warning' ? undefined : 'warning' })}
        >
          warnings {thousands(news.warnings)}
        </button>
        <button
          type="button"
          class="chip"
          aria-pressed={address.level === 'error'}
          onClick={() => store.refine({ level: address.level === 'error' ? undefined : 'error' })}
        >
          errors {thousands(news.errors)}
        </button>
        <input
          id="search"
          type="search"
          class="small"
          placeholder="search"
          aria-label="Search the log"
          value={address.q}
          onInput={({ currentTarget }) => store.refine({ q: currentTarget.value })}
        />
        <span class="spacer" />
        <span class="small quiet count">
          {address.q !== '' && news.selectedRow !== undefined && `${thousands(news.selectedRow + 1)} of `}
          {thousands(news.lines)} lines
        </span>
        <button type="button" class="chip follow" onClick={() => pool.current?.follow()}>
          {news.following ? 'following ↓' : `▾ ${thousands(news.unread)} new`}
        </button>
        <button
          type="button"
          class="chip raw"
          aria-pressed={raw}
          title="Lines with the engine's own stamp and rank (t)"
          onClick={() => setRaw(!raw)}
        >
          raw
        </button>
        <button type="button" class="chip wide" aria-pressed={tall} onClick={() => setTall(!tall)}>
          tall
        </button>
      </div>
      <p class="log-mark" ref={mark} />
      <div class="log-frame">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll region takes focus so that keys scroll it */}
        <section class="log-box" ref={box} tabIndex={0} aria-label="Log lines">
          <div
            class="log-inner"
            ref={inner}
            role="table"
            aria-label="Log lines"
            aria-rowcount={news.total}
            aria-hidden={news.total === 0}
          />
          {news.total === 0 && (
            <p class="body quiet">
              {shown.attempts.length === 0 ? 'No rank has been started yet.' : 'No lines under this filter.'}
            </p>
          )}
        </section>
        <canvas
          class="log-strip"
          ref={canvas}
          role="img"
          aria-label="The whole log, and what of it is in view"
        />
      </div>
      {aloud && <NewLines lines={news.lines} errors={news.errors} />}
      {news.selected && (
        <div class="line-whole" aria-live="polite">
          <p class="small quiet">
            rank {news.selected.rank} · {news.selected.node} · line {thousands(news.selected.line)} ·{' '}
            {stageWords(news.selected.stage)} · {clock(new Date(news.selected.at).toISOString())}
            {news.selected.fold && (
              <>
                {` · ${foldWords(news.selected.fold)}, Enter ${news.selected.fold.open ? 'closes' : 'opens'} it `}
                <button type="button" class="plain small" onClick={() => pool.current?.toggle()}>
                  {news.selected.fold.open ? 'close' : 'open'}
                </button>
              </>
            )}
          </p>
          <code>{news.selected.text}</code>
        </div>
      )}
    </section>
  );
}

function stageWords(name: string): string {
  const stage = STAGES.find((one) => one === name);
  return stage === undefined ? name : STAGE_WORDS[stage];
}

/** A press on the words of a fold opens or closes it; one on a line chooses it. */
function onPress({ target }: Event, pool: LogPool): void {
  if (!(target instanceof Element)) return;
  const place = target.closest<HTMLElement>('.row')?.dataset['place'];
  if (place === undefined) return;
  pool.choose(place);
  if (target.closest('.f button')) pool.toggle();
}

/** Keys of the box: arrows choose a line, Enter opens or closes its fold. */
function onKey(event: KeyboardEvent, pool: LogPool, store: PageStore): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (event.key === 'ArrowDown') pool.choose(1);
  else if (event.key === 'ArrowUp') pool.choose(-1);
  else if (event.key === 'Enter') open(pool, store);
  else return;
  event.preventDefault();
}

function toggled(chosen: readonly number[], rank: number, all: readonly number[]): readonly number[] {
  const now = chosen.length === 0 ? all : chosen;
  const next = now.includes(rank) ? now.filter((one) => one !== rank) : [...now, rank];
  return next.length === all.length ? [] : next;
}

/** A fold opens or closes; a line that was searched for is shown among the others. */
function open(pool: LogPool, store: PageStore): void {
  const { q, level } = store.page.address;
  const { chosen } = pool;
  if (chosen !== undefined && (q !== '' || level !== undefined)) {
    void pool.reveal(placeText(chosen));
    store.refine({ q: '', level: undefined });
  } else pool.toggle();
}

/** Keys of the page that are about the log. */
function doKey(key: string, pool: LogPool, store: PageStore): void {
  if (key === 'n') pool.choose(1);
  else if (key === 'N') pool.choose(-1);
  else if (key === '[') void pool.toStop(-1);
  else if (key === ']') void pool.toStop(1);
  else if (key === 'e') void pool.toError(store.page.shown.attempts.at(-1)?.attempt);
}

/** Quoted lines by attempt, rank and line, with their number on the card. */
function quotesOf(page: Page): ReadonlyMap<string, number> {
  return new Map(
    page.shown.attempts.flatMap((attempt) =>
      (attempt.finding?.quotes ?? []).map((quote, index): [string, number] => [
        `${attempt.attempt}-${quote.rank}-${quote.line}`,
        index + 1,
      ]),
    ),
  );
}
