import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { HERE_NOW } from '../data/address.ts';
import type { Page, PageStore } from '../data/page.ts';
import { Cluster } from './cluster.tsx';
import { Keys } from './keys.tsx';
import { Log } from './log.tsx';
import { Models } from './models.tsx';
import { Now } from './now.tsx';
import { Replay } from './replay.tsx';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';
import { Serving } from './serving.tsx';
import { Side } from './side.tsx';
import { keepSingleKeys, singleKeys } from './single-keys.ts';
import { Spoken } from './spoken.tsx';
import { toggleTheme } from './theme.ts';
import { Top } from './top.tsx';

/** The page: one column that tells, one that acts. */
export function App({ page, store }: { readonly page: Page; readonly store: PageStore }): JSX.Element {
  const [keys, setKeys] = useState(false);
  const [single, setSingle] = useState(singleKeys);
  const [aloud, setAloud] = useState(false);
  const [large, setLarge] = useState<boolean | undefined>(undefined);
  const full = large ?? fullByItself(page);
  useEffect(() => {
    document.title = `${document.querySelector('h1')?.textContent ?? ''} · firstlight`;
  });
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void =>
      key(event, store, { single, setKeys, toggle: () => setLarge(!full) });
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [full, single]);
  return (
    <>
      <a class="skip" href="#now">
        Now
      </a>
      <a class="skip" href="#card">
        The card
      </a>
      <a class="skip" href="#log">
        Log
      </a>
      <Top page={page} store={store} keys={() => setKeys(true)} />
      <Spoken page={page} />
      {page.address.view === 'runs' ? (
        <main class="single">
          <Runs page={page} store={store} />
        </main>
      ) : (
        <main>
          <Now
            page={page}
            action={page.address.at === undefined ? <Replay page={page} store={store} /> : null}
          />
          {/* In the order of importance for whoever goes by keys; the style sheet puts it right. */}
          <div class="column side">
            <Side page={page} store={store} />
          </div>
          <div class="column left">
            {page.address.at !== undefined && <Replay page={page} store={store} />}
            <Cluster page={page} store={store} full={full} toggle={() => setLarge(!full)} />
            <Serving page={page} />
            <Run page={page} store={store} />
            <Log page={page} store={store} aloud={aloud} />
            <Models page={page} />
          </div>
        </main>
      )}
      <Dock page={page} store={store} />
      <Keys
        open={keys}
        close={() => setKeys(false)}
        aloud={aloud}
        setAloud={setAloud}
        single={single}
        setSingle={(on) => {
          keepSingleKeys(on);
          setSingle(on);
        }}
      />
    </>
  );
}

/** Until the launch, and whenever a finding is about memory, the cluster is what a person looks at. */
function fullByItself(page: Page): boolean {
  const { shown } = page;
  if (shown.attempts.length === 0) return true;
  return /memory|oom/.test(shown.attempts.at(-1)?.finding?.cause ?? '');
}

/** On a phone the one action that fits the state, within reach of a thumb. */
function Dock({ page, store }: { readonly page: Page; readonly store: PageStore }): JSX.Element {
  if (page.address.at !== undefined)
    return (
      <div class="dock">
        <button type="button" onClick={() => store.refine({ at: undefined })}>
          Back to live
        </button>
      </div>
    );
  const to = page.shown.asked ? ['card', 'Answer'] : page.shown.serving ? ['chat', 'Chat'] : ['log', 'Log'];
  return (
    <div class="dock">
      <button type="button" onClick={() => document.getElementById(to[0] ?? '')?.scrollIntoView()}>
        {to[1]}
      </button>
      <button type="button" onClick={() => store.go({ ...HERE_NOW, view: 'runs' })}>
        Runs
      </button>
    </div>
  );
}

type Does = {
  /** Whether keys that write a character do anything. */
  readonly single: boolean;
  readonly setKeys: (open: boolean) => void;
  readonly toggle: () => void;
};

/** Single keys, outside of fields; none changes a host. */
function key(event: KeyboardEvent, store: PageStore, does: Does): void {
  const { target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field =
    target instanceof HTMLInputElement ||
    target instanceof HTMLSelectElement ||
    target instanceof HTMLTextAreaElement;
  if (event.key === 'Escape') {
    if (field && target instanceof HTMLElement) target.blur();
    else
      store.refine({
        at: undefined,
        ranks: [],
        stage: undefined,
        level: undefined,
        q: '',
        attempt: undefined,
      });
    return;
  }
  if (field || (!does.single && event.key.length === 1)) return;
  const { address, events } = store.page;
  const press = (selector: string): void => document.querySelector<HTMLElement>(selector)?.click();
  const focus = (id: string): void => document.getElementById(id)?.focus();
  const step = (by: number): void => {
    const at = events?.findLastIndex((one) => one.seq <= (address.at ?? 0)) ?? -1;
    const to = events?.[at + by];
    if (address.at !== undefined && to !== undefined) store.refine({ at: to.seq });
  };
  const pressed: Readonly<Record<string, () => void>> = {
    '?': () => does.setKeys(true),
    '/': () => focus('search'),
    f: () => press('.log-panel .chip.follow'),
    c: () => focus('card-head'),
    r: () => focus('runs'),
    m: does.toggle,
    d: toggleTheme,
    t: () => press('.log-panel .chip.raw'),
    w: () => press('.log-panel .chip.wide'),
    ' ': () => press('.replay .chip'),
    '0': () => store.refine({ ranks: [] }),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
  };
  const work =
    pressed[event.key] ??
    (/^[1-8]$/.test(event.key)
      ? () => document.querySelectorAll<HTMLElement>('.log-panel .of-rank')[Number(event.key) - 1]?.click()
      : /^[nNe[\]]$/.test(event.key)
        ? () => dispatchEvent(new CustomEvent('log-key', { detail: event.key }))
        : undefined);
  if (work === undefined) return;
  if (address.at === undefined && (event.key.startsWith('Arrow') || event.key === ' ')) return;
  // What has the focus takes the space bar itself.
  if (event.key === ' ' && target instanceof HTMLElement && target.matches('button, a, summary, .log-box'))
    return;
  event.preventDefault();
  work();
}
