import type { JSX } from 'preact';
import type { Step } from '../../../domain/plan.ts';
import { railStops } from '../../../domain/rail.ts';
import type { RemedyState } from '../../../domain/run-state.ts';
import { edit, STAGE_WORDS } from '../../../domain/run-words.ts';
import { clock, stopwatch } from '../../../domain/units.ts';
import type { Page, PageStore } from '../data/page.ts';
import { type AttemptPicture, attemptPicture, type Cell, COLUMNS, type Row } from '../picture/timeline.ts';
import { Glyph } from './glyph.tsx';
import { Words } from './words.tsx';

const SHORT = {
  rendezvous: 'rdv',
  weights: 'weights',
  kv: 'KV',
  graphs: 'graph',
  warmup: 'warm',
  serving: 'serve',
};

/** The run: its rail, the plan before the launch, then the attempts by stages. */
export function Run({ page, store }: { readonly page: Page; readonly store: PageStore }): JSX.Element {
  const { shown } = page;
  const at = page.address.at === undefined ? page.now : Date.parse(shown.lastAt ?? '') || page.now;
  const ended = shown.ended === undefined ? undefined : Date.parse(shown.ended.at);
  const last = shown.attempts.length - 1;
  const pictures = shown.attempts.map((attempt, index) => ({
    attempt,
    picture: attemptPicture(attempt, index === last ? at : lastTime(attempt, at), ended),
  }));
  const parts = pictures.flatMap(({ picture }) => picture.rows.flatMap((row) => row.ribbon));
  const longest = Math.max(1, ...parts.map((part) => part.to));
  return (
    <section class="panel" id="run" aria-labelledby="run-head">
      <div class="head">
        <h2 id="run-head" tabIndex={-1}>
          {shown.run === '' ? 'Run' : `Run ${shown.run}`}
        </h2>
        <span class="small quiet">{about(page)}</span>
      </div>
      <Rail page={page} />
      {shown.attempts.length === 0 ? (
        <PlanTable page={page} />
      ) : (
        <div class="body attempts">
          {pictures.map(({ attempt, picture }, index) => {
            const later = shown.attempts.slice(index + 1).some((other) => !other.finding?.final);
            return (
              <div key={attempt.attempt}>
                {index > 0 && shown.attempts[index - 1]?.engine !== attempt.engine && (
                  <p class="band">
                    the engine was changed from {shown.attempts[index - 1]?.engine} to {attempt.engine}
                  </p>
                )}
                <Attempt
                  picture={picture}
                  folded={later && shown.attempts.length > 2 && index < last - 1}
                  longest={longest}
                  store={store}
                  page={page}
                />
                {attempt.remedy && <RemedyBand remedy={attempt.remedy} stage={attempt.finding?.stage} />}
              </div>
            );
          })}
        </div>
      )}
    </section>
  );
}

function lastTime(
  attempt: { readonly ranks: readonly { readonly ended: { readonly at: string } | undefined }[] },
  now: number,
): number {
  const ends = attempt.ranks.flatMap((rank) => (rank.ended ? [Date.parse(rank.ended.at)] : []));
  return ends.length > 0 ? Math.max(...ends) : now;
}

function about(page: Page): string {
  const { shown } = page;
  if (shown.startedAt === undefined) return '';
  const plan = shown.plan && shown.attempts.length === 0 ? ` · plan ${shown.plan.digest.slice(0, 4)}` : '';
  const end = shown.ended ? ` · ended ${clock(shown.ended.at)}` : '';
  const word = shown.operation === 'up' ? '' : `${shown.operation ?? ''} · `;
  return `${word}started ${clock(shown.startedAt)}${plan}${end}`;
}

const MARK = { done: '✓', working: '◔', waits: '◐', ahead: '○', failed: '✕', never: '·' } as const;

function Rail({ page }: { readonly page: Page }): JSX.Element | null {
  const stops = page.shown.operation === undefined ? [] : railStops(page.shown);
  if (stops.length === 0) return null;
  return (
    <ol class="rail" aria-label="Progress">
      {stops.map(({ stop, state }) => (
        <li
          key={stop}
          class={`stop ${state}`}
          aria-current={state === 'working' || state === 'waits' ? 'step' : undefined}
        >
          <Glyph of={MARK[state]} /> {stop}
          <span class="unseen">{state}</span>
        </li>
      ))}
    </ol>
  );
}

function PlanTable({ page }: { readonly page: Page }): JSX.Element {
  const { plan } = page.shown;
  if (page.reading)
    return (
      <p class="body quiet">{page.unread === undefined ? 'Reading …' : 'This run could not be read.'}</p>
    );
  if (!plan)
    return (
      <p class="body quiet">
        {page.shown.run === '' ? (
          <>
            No run yet. Bring a model up with <code>firstlight up RECIPE</code>
          </>
        ) : page.shown.operation === 'up' ? (
          'Nothing is planned yet.'
        ) : (
          'This run launches nothing.'
        )}
      </p>
    );
  return (
    <div class="scroll">
      <table class="plan">
        <caption class="unseen">The plan, in order</caption>
        <thead class="unseen">
          <tr>
            <th scope="col">phase</th>
            <th scope="col">node</th>
            <th scope="col">step</th>
            <th scope="col">asks</th>
            <th scope="col">undo</th>
          </tr>
        </thead>
        <tbody>
          {plan.phases.flatMap((phase) => [
            ...phase.steps.map((step) => (
              <tr key={step.id}>
                <td class="quiet">{phase.kind}</td>
                <td>{step.node}</td>
                <td>
                  <details>
                    <summary>{step.title}</summary>
                    <p class="small quiet">
                      {step.why} {step.risk}
                    </p>
                  </details>
                </td>
                <td>{step.needsConsent && <b class="small wait">◐ asks you</b>}</td>
                <td class="small quiet">{undoWords(step)}</td>
              </tr>
            )),
            ...phase.services.map((service) => (
              <tr key={service.name}>
                <td class="quiet">{phase.kind}</td>
                <td>{service.node}</td>
                <td>
                  start rank {service.rank}, {service.engine}
                </td>
                <td />
                <td class="small quiet">stop</td>
              </tr>
            )),
          ])}
          {plan.blockers.map((blocker) => (
            <tr key={blocker.title}>
              <td class="bad">✕</td>
              <td>{blocker.node ?? ''}</td>
              <td colSpan={3}>
                {blocker.title}{' '}
                <span class="quiet">
                  <Words text={blocker.advice[0] ?? ''} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function undoWords(step: Step): string {
  if (step.undo.kind === 'command') return `back: ${step.undo.title}`;
  return step.undo.kind === 'irreversible' ? `irreversible: ${step.undo.why}` : 'needs no undo';
}

function Attempt({
  picture,
  folded,
  longest,
  store,
  page,
}: {
  readonly picture: AttemptPicture;
  readonly folded: boolean;
  /** Milliseconds that the full width of every ribbon of this run stands for. */
  readonly longest: number;
  readonly store: PageStore;
  readonly page: Page;
}): JSX.Element {
  const mark = picture.state === 'failed' ? '✕' : picture.state === 'serving' ? '✓' : '◔';
  return (
    <div class="attempt">
      <h3>
        Attempt {picture.attempt} <span class="plainly">{picture.engine}</span>{' '}
        <span
          class={
            picture.state === 'failed'
              ? 'small bad strong'
              : picture.state === 'serving'
                ? 'small ok strong'
                : 'small working strong'
          }
        >
          {mark} {picture.result}
        </span>{' '}
        <span class="small quiet">
          {stopwatch(picture.took)}
          {picture.state === 'working' ? ' so far' : ''}
        </span>
      </h3>
      {!folded && (
        <div class="grid" role="table" aria-label={`Attempt ${picture.attempt}`}>
          <div class="grid-row heads" role="row">
            <span role="columnheader">
              <span class="unseen">rank</span>
            </span>
            {COLUMNS.map((column) => (
              <span key={column} role="columnheader" class="small quiet">
                <span class="wide">{STAGE_WORDS[column]}</span>
                <span class="narrow">{SHORT[column]}</span>
              </span>
            ))}
          </div>
          {picture.rows.map((row) => (
            <GridRow
              key={row.rank}
              row={row}
              open={(cell) => filter(store, page, picture.attempt, row, cell)}
            />
          ))}
          <Ribbon picture={picture} longest={longest} />
        </div>
      )}
    </div>
  );
}

function filter(store: PageStore, page: Page, attempt: number, row: Row, cell: Cell): void {
  const { ranks, stage } = page.address;
  const same = ranks.length === 1 && ranks[0] === row.rank && stage === cell.column;
  store.refine(
    same
      ? { ranks: [], stage: undefined, attempt: undefined }
      : { ranks: [row.rank], stage: cell.column, attempt },
  );
}

function GridRow({ row, open }: { readonly row: Row; readonly open: (cell: Cell) => void }): JSX.Element {
  return (
    <div class="grid-row" role="row">
      <span role="rowheader" class="rank-name">
        <i class={`gutter rank-${row.rank % 4}${row.rank > 3 ? ' dashed' : ''}`} />
        <b>{row.rank}</b> <span class="wide">{row.node}</span>
      </span>

      {row.cells.map((cell) => (
        <span key={cell.column} role="cell" class={`cell ${cell.state}`}>
          {cell.state === 'ahead' || cell.state === 'never' ? (
            <span class="unseen">{cell.label}</span>
          ) : (
            <button type="button" aria-label={cell.label} onClick={() => open(cell)}>
              {SIGN[cell.state]}
              <b>{cell.strong}</b> <span class="cell-text">{cell.text}</span>
              {cell.percent !== undefined && (
                <span
                  class="floor"
                  role="progressbar"
                  aria-label={cell.label}
                  aria-valuenow={Math.floor(cell.percent)}
                  aria-valuemin={0}
                  aria-valuemax={100}
                  style={{ width: `${cell.percent}%` }}
                />
              )}
            </button>
          )}
        </span>
      ))}
    </div>
  );
}

const SIGN: Readonly<Record<string, string>> = {
  done: '✓ ',
  failed: '✕ ',
  still: '! ',
  peer: '– ',
  ready: '● ',
  working: '',
};

/** The same stages in true time: where the time went, not how far it came. */
function Ribbon({
  picture,
  longest,
}: {
  readonly picture: AttemptPicture;
  readonly longest: number;
}): JSX.Element | null {
  const row = picture.rows[0];
  if (!row) return null;
  return (
    <div class="grid-row ribbon" aria-hidden="true">
      <span />

      <div class={`ribbon-track ${picture.state}`}>
        {row.ribbon.map((part) => (
          <i
            key={`${part.column} ${part.from}`}
            class={part.column}
            title={`${STAGE_WORDS[part.column]} ${stopwatch(part.to - part.from)}`}
            style={{
              left: `${(part.from / longest) * 100}%`,
              width: `${Math.max(0.3, ((part.to - part.from) / longest) * 100)}%`,
            }}
          />
        ))}
      </div>
    </div>
  );
}

const REMEDY = {
  applied: <b class="small working">◔ applied, not yet proved</b>,
  proved: <b class="small ok">✓ proved</b>,
  failed: <b class="small bad">✕ no effect</b>,
};

function RemedyBand({
  remedy,
  stage,
}: {
  readonly remedy: RemedyState;
  readonly stage: keyof typeof STAGE_WORDS | undefined;
}): JSX.Element {
  const what = remedy.edits.length > 0 ? remedy.edits.map(edit).join(', ') : remedy.title;
  const tail =
    remedy.state === 'applied'
      ? `proved when every rank gets past ${STAGE_WORDS[stage ?? 'start']} without these lines`
      : remedy.why;
  return (
    <p class="band">
      {REMEDY[remedy.state]} remedy <code>{what}</code> <span class="small quiet">{tail}</span>
    </p>
  );
}
