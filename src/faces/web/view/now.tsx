import type { JSX } from 'preact';
import { type NowLine, nowLine, unreadLine } from '../../../domain/now-line.ts';
import type { RunState } from '../../../domain/run-state.ts';
import { rate, stopwatch } from '../../../domain/units.ts';
import type { Page } from '../data/page.ts';
import { Glyph } from './glyph.tsx';
import { Words } from './words.tsx';

/** The one sentence that every face opens with, what is awaited, and the run's clock. */
export function Now({
  page,
  action,
}: {
  readonly page: Page;
  readonly action: JSX.Element | null;
}): JSX.Element {
  const { shown } = page;
  const at = page.address.at === undefined ? page.now : Date.parse(shown.lastAt ?? '') || page.now;
  const line = pageLine(page, shown, at);
  const began = shown.startedAt === undefined ? undefined : Date.parse(shown.startedAt);
  const runs = began !== undefined && shown.ended === undefined && shown.serving === undefined;
  return (
    <section class="now" id="now" aria-label="Now" tabIndex={-1}>
      <span class="glyph">
        {line.glyph === '◔' ? <span class="ring" aria-hidden="true" /> : <Glyph of={line.glyph} />}
      </span>
      <div class="words">
        <h1>
          <Words text={line.sentence} />
        </h1>
        <p class="next">
          <Words text={spoken(page, line.next)} />
        </p>
      </div>
      {runs && began !== undefined ? (
        <p class="clock">
          <b>{stopwatch(at - began)}</b>
          <span class="small quiet">since the start</span>
        </p>
      ) : (
        action
      )}
    </section>
  );
}

/** The line of the shown or the live run; of none while there is none to read. `at` is milliseconds since the epoch. */
export function pageLine(page: Page, state: RunState, at: number): NowLine {
  if (page.unread !== undefined) return unreadLine(page.unread, '/runs');
  if (page.reading) return { glyph: '', sentence: 'Reading …', next: '' };
  return nowLine(state, at);
}

/** Serving has nothing that is awaited: there it says what was proved. */
function spoken(page: Page, next: string): string {
  const { serving, measured } = page.shown;
  if (next !== '' || serving === undefined) return next;
  const speed =
    measured === undefined
      ? ''
      : `: ${rate(measured.tokensPerSecond)} tok/s, first token after ${measured.firstTokenSeconds.toFixed(2)} s`;
  return `Proved by an answer${speed}. ${serving.networkText}`;
}
