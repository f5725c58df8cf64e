import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Event } from '../../../domain/event.ts';
import { allowedBytes } from '../../../domain/plan.ts';
import { age, gib, gibNumber, list, plural, stopwatch } from '../../../domain/units.ts';
import { answerConsent } from '../data/api.ts';
import { mayChange, type Page, type PageStore } from '../data/page.ts';
import { Words } from './words.tsx';

type Asked = Extract<Event, { type: 'consent-asked' }>;
type Step = Asked['steps'][number];

/** What exactly happens with a yes. Nothing is chosen for the person; nothing is stopped before the answer. */
export function ConsentCard({
  page,
  store,
  asked,
}: {
  readonly page: Page;
  readonly store: PageStore;
  readonly asked: Asked;
}): JSX.Element {
  const [sending, setSending] = useState(false);
  const chosen = asked.steps.filter((step) => page.chosen.has(step.id));
  const nodes = [...new Set(asked.steps.map((step) => step.node))];
  const bytes = asked.steps.reduce((sum, step) => sum + step.target.bytes, 0);
  const replay = page.address.at !== undefined;
  const may = mayChange(page) && !sending;
  const answer = (allowed: readonly Step[]): void => {
    setSending(true);
    const ids = allowed.map((step) => step.id);
    const refused = asked.steps.map((step) => step.id).filter((id) => !ids.includes(id));
    void store
      .attempt(() => answerConsent(page.live.run, asked.plan, ids, refused))
      .finally(() => setSending(false));
  };
  return (
    <section class="panel card wait-card" id="card" aria-labelledby="card-head">
      <div class="body">
        <p class="small strong wait">
          ◐ waiting for you{replay ? '' : ` · ${stopwatch(page.now - Date.parse(asked.at))}`}
        </p>
        <h2 id="card-head" class="card-title" tabIndex={-1}>
          Stop {plural(asked.steps.length, 'thing')} on {list(nodes)} to free {gib(bytes)}?
        </h2>
        <p class="quiet">
          {asked.steps.length === 1 ? 'It holds' : 'They hold'} memory that the plan needs. Nothing is stopped
          until you allow it; the run waits.
        </p>
      </div>
      {asked.steps.map((step) => (
        <Row key={step.id} step={step} page={page} store={store} several={nodes.length > 1} />
      ))}
      {!replay && (
        <div class="body ruled">
          {nodes.map((node) => (
            <Sum key={node} node={node} page={page} chosen={chosen} />
          ))}
          <p class="buttons">
            <button
              type="button"
              class="main"
              disabled={!may || chosen.length === 0}
              onClick={() => answer(chosen)}
            >
              Allow {chosen.length} of {asked.steps.length}
            </button>
            <button type="button" disabled={!may} onClick={() => answer([])}>
              End the run
            </button>
          </p>
          <p class="small quiet">
            Or in a terminal:{' '}
            <code>
              <Words
                text={`firstlight up RECIPE --consent ${asked.steps.map((step) => step.id).join(',')}`}
              />
            </code>
          </p>
          {!mayChange(page) && <p class="small wait">! this page is read-only: answer in the terminal</p>}
        </div>
      )}
    </section>
  );
}

function Row({
  step,
  page,
  store,
  several,
}: {
  readonly step: Step;
  readonly page: Page;
  readonly store: PageStore;
  readonly several: boolean;
}): JSX.Element {
  const { target } = step;
  const id = `consent-${step.id}`;
  const toggle = (): void => {
    // The newest choice, not the one last painted: two may come within one frame.
    const chosen = new Set(store.page.chosen);
    if (!chosen.delete(step.id)) chosen.add(step.id);
    store.change({ chosen });
  };
  return (
    <div class="consent-row ruled">
      <input
        hidden={page.address.at !== undefined}
        type="checkbox"
        id={id}
        checked={page.chosen.has(step.id)}
        disabled={!mayChange(page)}
        aria-describedby={`${id}-what`}
        onChange={toggle}
      />
      <div>
        <label for={id}>
          <b>{target.name}</b> {several ? `${step.node}: ` : ''}
          {target.what}
        </label>
        <p class="small quiet" id={`${id}-what`}>
          {target.ageSeconds === undefined ? '' : `Runs for ${age(target.ageSeconds)}. `}
          {target.listens.length > 0
            ? `Answers on port ${list(target.listens.map(String))}; who is connected is not known. `
            : ''}
          {target.job && target.job.length > 0
            ? `Half of one job with ${list(target.job)}: stopping one ends both. `
            : ''}
          Stopped by <code>{step.how}</code>.{' '}
          {step.undo.kind === 'irreversible' ? (
            <b class="bad">✕ cannot be brought back: {step.undo.why}</b>
          ) : (
            <>
              <b>Comes back</b>{' '}
              {step.undo.kind === 'command' && <Words text={`with down --restore: ${step.undo.title}`} />}
            </>
          )}
        </p>
      </div>
      <b class="size">{gib(target.bytes)}</b>
    </div>
  );
}

/** What the choice frees against what the plan needs there. */
function Sum({
  node,
  page,
  chosen,
}: {
  readonly node: string;
  readonly page: Page;
  readonly chosen: readonly Step[];
}): JSX.Element | null {
  const { plan: whole, consented } = page.shown;
  const plan = whole?.memory.find((one) => one.node === node);
  if (!whole || !plan || plan.verdict === 'unknown') return null;
  const freed = chosen.filter((step) => step.node === node).reduce((sum, step) => sum + step.target.bytes, 0);
  const can = plan.canGetBytes + allowedBytes(whole, consented, node) + freed;
  const least = plan.sumBytes - plan.errorBytes;
  const enough = can >= plan.sumBytes + plan.errorBytes ? 'yes' : can >= least ? 'maybe' : 'no';
  return (
    <div class="sum">
      <p>
        <span class="quiet">then {node} can give</span> <b>{gib(can)}</b>
      </p>
      <p>
        <span class="quiet">the plan needs there</span>{' '}
        <b>
          {gibNumber(plan.sumBytes)} ± {gibNumber(plan.errorBytes)} GiB
        </b>
      </p>
      {enough === 'no' && <p class="small strong bad">✕ not enough: {gib(plan.sumBytes - can)} short</p>}
      {enough === 'maybe' && <p class="small strong wait">! may boot: within the error bar</p>}
      {enough === 'yes' && <p class="small strong ok">✓ enough</p>}
    </div>
  );
}
