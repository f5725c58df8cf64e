import type { JSX } from 'preact';
import { stopwatch, when } from '../../../domain/units.ts';
import { HERE_NOW } from '../data/address.ts';
import { mayChange, type Page, type PageStore } from '../data/page.ts';
import { toggleTheme } from './theme.ts';

/** The header: whose cluster, which run, and how fresh all this is. */
export function Top({ page, store, keys }: Props): JSX.Element {
  return (
    <header class="top">
      <a
        class="mark"
        href="/"
        onClick={(event) => {
          event.preventDefault();
          store.go(HERE_NOW);
        }}
      >
        <img src="/mark.svg" alt="" width="24" height="24" />
        firstlight
      </a>
      <span class="quiet wide">{page.cluster?.cluster ?? page.shown.cluster}</span>
      <span class="wide">{page.shown.recipe ?? ''}</span>
      <span class="spacer" />
      <nav aria-label="Page">
        <RunPicker page={page} store={store} />
        <Pill page={page} store={store} />
        <button type="button" class="chip wide" onClick={() => document.getElementById('search')?.focus()}>
          <kbd>/</kbd> search
        </button>
        <button type="button" class="chip wide" onClick={keys}>
          <kbd>?</kbd> keys
        </button>
        <button type="button" class="chip wide" onClick={toggleTheme}>
          <kbd>d</kbd> theme
        </button>
      </nav>
    </header>
  );
}

type Props = { readonly page: Page; readonly store: PageStore; readonly keys: () => void };

function RunPicker({ page, store }: { readonly page: Page; readonly store: PageStore }): JSX.Element | null {
  if (page.runs === undefined || page.runs.length === 0) return null;
  const value = page.address.view === 'runs' ? '*' : (page.address.run ?? '');
  return (
    <select
      id="runs"
      class="small wide"
      aria-label="Run"
      value={value}
      onChange={({ currentTarget }) => {
        const run = currentTarget.value;
        store.go(
          run === '*' ? { ...HERE_NOW, view: 'runs' } : { ...HERE_NOW, run: run === '' ? undefined : run },
        );
      }}
    >
      <option value="">what goes on now</option>
      <option value="*">all runs</option>
      {page.runs.slice(0, 50).map((run) => (
        <option key={run.run} value={run.run}>
          run {run.run} · {run.operation} · {run.outcome} · {when(run.startedAt, page.now)}
        </option>
      ))}
    </select>
  );
}

/** live, replay, "12 s behind", disconnected, read-only, not shown; a consent asked meanwhile shows in replay too. */
function Pill({ page, store }: { readonly page: Page; readonly store: PageStore }): JSX.Element {
  if (page.unread !== undefined) return <span class="pill">not shown</span>;
  if (page.address.at !== undefined) {
    return (
      <button type="button" class="chip" onClick={() => store.refine({ at: undefined })}>
        replay · {page.live.phase === 'waiting' ? '◐ asks you · ' : ''}back to live
      </button>
    );
  }
  const { state, since } = page.connection;
  if (state === 'lost')
    return (
      <span class="pill bad" role="status">
        disconnected for {stopwatch(page.now - since)}, trying again; the run goes on without this page
      </span>
    );
  const ended = page.live.ended !== undefined && page.address.run !== undefined;
  const word = state === 'connecting' ? 'connecting' : ended ? 'ended' : 'live';
  return <span class="pill">{page.cluster && !mayChange(page) ? `${word} · read-only` : word}</span>;
}
