import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Finding } from '../../../domain/finding.ts';
import type { AttemptState } from '../../../domain/run-state.ts';
import { edit, STAGE_WORDS } from '../../../domain/run-words.ts';
import { plural, stopwatch } from '../../../domain/units.ts';
import { HERE_NOW } from '../data/address.ts';
import { operate } from '../data/api.ts';
import { mayChange, type Page, type PageStore } from '../data/page.ts';
import { Chat } from './chat.tsx';
import { ConsentCard } from './consent-card.tsx';
import { Glyph } from './glyph.tsx';
import { Words } from './words.tsx';

type Props = { readonly page: Page; readonly store: PageStore };

/** The column that acts: a question, else the cause, else the steps; what was cured; what is to be given back. */
export function Side({ page, store }: Props): JSX.Element {
  const { shown } = page;
  const current = shown.attempts.at(-1);
  const open = current?.finding ?? (shown.attempts.length === 0 ? shown.finding : undefined);
  const cured = shown.attempts.filter((attempt) => attempt !== current && attempt.finding !== undefined);
  return (
    <>
      {page.refused && (
        <section class="panel card warn" aria-label="Refused">
          <div class="body">
            <p class="small strong wait">! refused</p>
            <p>
              <Words text={page.refused.message} />
            </p>
            <p class="quiet">
              <Words text={page.refused.hint} />
            </p>
          </div>
        </section>
      )}
      {shown.asked && <ConsentCard page={page} store={store} asked={shown.asked} />}
      {open && <FindingCard finding={open} attempt={current} store={store} page={page} />}
      {shown.serving && page.address.at === undefined && mayChange(page) && (
        <Chat model={shown.serving.model} />
      )}
      {!shown.serving && !shown.asked && <Steps page={page} />}
      {cured.map((attempt) =>
        attempt.finding ? (
          <Cured
            key={attempt.attempt}
            finding={attempt.finding}
            attempt={attempt}
            store={store}
            page={page}
          />
        ) : null,
      )}
      <Owed page={page} store={store} />
    </>
  );
}

const RESULT = { running: '◔', done: '✓', failed: '✕', skipped: '–', lost: '?' } as const;

function Steps({ page }: { readonly page: Page }): JSX.Element | null {
  const { steps, notes } = page.shown;
  if (steps.length === 0 && notes.length === 0) return null;
  const done = steps.filter((step) => step.result !== 'running').length;
  return (
    <section class="panel" aria-labelledby="steps-head">
      <div class="head">
        <h2 id="steps-head" tabIndex={-1}>
          Steps
        </h2>
        <span class="spacer" />
        <span class="small quiet">
          {done} of {steps.length}
        </span>
      </div>
      <ol class="body steps">
        {steps.slice(-14).map((step, index) => (
          <li key={`${step.id} ${step.node} ${index}`}>
            <Glyph of={RESULT[step.result]} />
            <span>
              {step.title}
              <span class="small quiet"> {step.node}</span>
              {step.result !== 'done' && step.result !== 'running' && (
                <span class="small bad">
                  {' '}
                  {step.result}: <Words text={step.text} />
                </span>
              )}
            </span>
            <span class="small quiet time">
              {step.milliseconds === undefined
                ? stopwatch(page.now - Date.parse(step.startedAt))
                : stopwatch(step.milliseconds)}
            </span>
          </li>
        ))}
        {notes.slice(-4).map((note) => (
          <li key={note.seq}>
            <Glyph of={note.level === 'warning' ? '!' : '○'} />
            <span class="small">
              <Words text={note.text} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** How sure it is, in a word. */
function sure(confidence: number): string {
  return confidence >= 0.9 ? 'sure' : confidence >= 0.7 ? 'likely' : 'possible';
}

function FindingCard({
  finding,
  attempt,
  store,
  page,
}: {
  readonly finding: Finding;
  readonly attempt: AttemptState | undefined;
  readonly store: PageStore;
  readonly page: Page;
}): JSX.Element {
  const unknown = finding.cause === 'unknown';
  return (
    <section class="panel card bad-card" id="card" aria-labelledby="card-head">
      <div class="body">
        <p class="small strong bad">
          ✕ {unknown ? 'cause unknown' : 'cause found'} · {finding.final ? 'final' : 'provisional'}
          {unknown ? '' : ` · ${sure(finding.confidence)}`}
        </p>
        <h2 id="card-head" class="card-title" tabIndex={-1}>
          {finding.title}
        </h2>
        <p class="quiet">
          <Words text={finding.why} />
        </p>
        <ol class="quotes">
          {finding.quotes.slice(0, 4).map((quote, index) => (
            <li key={`${quote.rank} ${quote.line}`} id={`quote-${index + 1}`}>
              <span class="plate">{index + 1}</span>
              <div>
                <code>{quote.text}</code>
                <p class="small quiet">
                  rank {quote.rank} · {quote.node} · line {quote.line}{' '}
                  {attempt && (
                    <button
                      type="button"
                      class="plain small"
                      onClick={() => {
                        location.hash = `log-${quote.rank}-${quote.line}`;
                        store.refine({
                          attempt: attempt.attempt,
                          ranks: [],
                          stage: undefined,
                          q: '',
                          level: undefined,
                        });
                        dispatchEvent(
                          new CustomEvent('show-line', {
                            detail: { attempt: attempt.attempt, rank: quote.rank, line: quote.line },
                          }),
                        );
                      }}
                    >
                      show in log
                    </button>
                  )}
                </p>
              </div>
            </li>
          ))}
        </ol>
        {finding.consequences.length > 0 && (
          <details>
            <summary class="small">what followed from it</summary>
            {finding.consequences.map((text) => (
              <p key={text} class="small quiet">
                <Words text={text} />
              </p>
            ))}
          </details>
        )}
      </div>
      {attempt?.remedy ? (
        <Remedy attempt={attempt} />
      ) : (
        <Advice finding={finding} ended={page.shown.ended !== undefined} />
      )}
    </section>
  );
}

function Remedy({ attempt }: { readonly attempt: AttemptState }): JSX.Element | null {
  const { remedy, finding } = attempt;
  if (!remedy) return null;
  const state = { applied: '◔ applied, not yet proved', proved: '✓ proved', failed: '✕ no effect' }[
    remedy.state
  ];
  return (
    <div class="body ruled">
      <h3>
        Remedy <span class="plainly quiet">{remedy.title}</span>
      </h3>
      {remedy.edits.length > 0 && (
        <div class="diff">
          <p class="small quiet">the recipe, for this run; the file is not changed</p>
          {remedy.edits.map((change) => {
            const [left, right] = edit(change).split(' → ');
            return (
              <div key={change.path}>
                <del>- {left}</del>
                <ins>
                  + {change.path}: {right}
                </ins>
              </div>
            );
          })}
        </div>
      )}
      <p class="small quiet">
        Changes no host. Tried once per engine. Proved when every rank gets past{' '}
        {STAGE_WORDS[finding?.stage ?? 'start']} without these lines.
      </p>
      <p
        class={
          remedy.state === 'proved'
            ? 'small strong ok'
            : remedy.state === 'failed'
              ? 'small strong bad'
              : 'small strong working'
        }
      >
        {state}
        {remedy.why === '' ? '' : `: ${remedy.why}`}
      </p>
    </div>
  );
}

function Advice({
  finding,
  ended,
}: {
  readonly finding: Finding;
  readonly ended: boolean;
}): JSX.Element | null {
  if (finding.advice.length === 0) return null;
  return (
    <div class="body ruled">
      <h3>{ended ? 'Do' : 'What a person can do'}</h3>
      {finding.advice.map((text) => (
        <p key={text}>
          <Words text={text} />
        </p>
      ))}
    </div>
  );
}

function Cured({
  finding,
  attempt,
  store,
  page,
}: {
  readonly finding: Finding;
  readonly attempt: AttemptState;
  readonly store: PageStore;
  readonly page: Page;
}): JSX.Element {
  const [open, setOpen] = useState(false);
  if (open) return <FindingCard finding={finding} attempt={attempt} store={store} page={page} />;
  const proved = attempt.remedy?.state === 'proved';
  return (
    <section
      class={proved ? 'panel card ok-card' : 'panel card'}
      aria-label={`Cause of attempt ${attempt.attempt}`}
    >
      <div class="body">
        <p class={proved ? 'small strong ok' : 'small strong quiet'}>
          {proved ? '✓ cause cured' : `✕ attempt ${attempt.attempt}`}
        </p>
        <p class="strong">{finding.title}</p>
        <p class="small quiet">
          {plural(finding.quotes.length, 'quoted line')}
          {attempt.remedy && attempt.remedy.edits.length > 0
            ? ` · ${attempt.remedy.edits.map(edit).join(', ')}`
            : ''}{' '}
          <button type="button" class="plain small" onClick={() => setOpen(true)}>
            open
          </button>
        </p>
      </div>
    </section>
  );
}

function Owed({ page, store }: Props): JSX.Element | null {
  const owed = page.shown.ended?.owed ?? [];
  const stopped = page.shown.steps.filter(
    (step) => step.undo === 'command' && step.result === 'done' && step.phase === 'clear',
  );
  const [asking, setAsking] = useState(false);
  const list = owed.length > 0 ? owed : stopped;
  if (list.length === 0) return null;
  const nodes = [...new Set(list.map((one) => one.node))].join(', ');
  const may = page.address.at === undefined && mayChange(page) && page.shown.ended !== undefined;
  return (
    <section class="panel" aria-labelledby="owed-head">
      <div class="body">
        <h2 id="owed-head" tabIndex={-1}>
          To give back{' '}
          <span class="plainly quiet">
            {plural(list.length, 'thing')} on {nodes}
          </span>
        </h2>
        <ul class="small quiet">
          {list.map((one) => (
            <li key={`${one.node} ${one.id}`}>
              {one.title} · {one.node}
            </li>
          ))}
        </ul>
        {may &&
          (asking ? (
            <p>
              {page.shown.serving
                ? 'This stops the model first, then starts what was stopped. '
                : 'This starts what was stopped. '}
              <button
                type="button"
                class="main"
                onClick={() => {
                  setAsking(false);
                  void store.attempt(async () => {
                    await (page.shown.serving ? operate('down', { restore: true }) : operate('restore', {}));
                    store.go(HERE_NOW);
                  });
                }}
              >
                Give back {plural(list.length, 'thing')}
              </button>{' '}
              <button type="button" onClick={() => setAsking(false)}>
                Not now
              </button>
            </p>
          ) : (
            <button type="button" onClick={() => setAsking(true)}>
              {page.shown.serving ? 'Stop and give back' : 'Give back'} …
            </button>
          ))}
      </div>
    </section>
  );
}
