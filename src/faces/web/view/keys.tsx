import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'this list'],
  ['/', 'search the log'],
  ['1 … 8, 0', 'a rank on or off, all ranks'],
  ['f, End', 'follow the end of the log'],
  ['e', 'errors only'],
  ['c', 'the card beside'],
  ['r', 'choose a run'],
  ['m', 'cluster full or compact'],
  ['d', 'dark or light'],
  ['t', "lines with the engine's own stamp"],
  ['w', 'log at full height'],
  ['↑ ↓, Enter', 'in the log: choose a line, open or close its fold'],
  ['Space, ← →', 'replay: play, one event'],
  ['Esc', 'close, clear, back to live'],
];

type Props = {
  readonly open: boolean;
  readonly close: () => void;
  /** Whether single keys do anything. */
  readonly single: boolean;
  readonly setSingle: (on: boolean) => void;
};

/** The list of keys, and whether they are on. None of them changes a host. */
export function Keys({ open, close, single, setSingle }: Props): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="keys-head">
      <h2 id="keys-head">Keys</h2>
      <label>
        <input
          type="checkbox"
          checked={single}
          onChange={({ currentTarget }) => setSingle(currentTarget.checked)}
        />{' '}
        Single keys do this. Off: only Esc, arrows and Enter do anything.
      </label>
      <dl class={single ? '' : 'off'}>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
