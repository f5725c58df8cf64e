import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'this list'],
  ['/', 'search the log'],
  ['1 … 8, 0', 'a rank on or off, all ranks'],
  ['f, End', 'follow the end of the log'],
  ['n, N', 'the line after or before, of those found'],
  ['[, ]', 'the mark or quoted line before or after'],
  ['e', 'the first error of this attempt'],
  ['c', 'the card beside'],
  ['r', 'choose a run'],
  ['m', 'cluster full or compact'],
  ['d', 'dark or light'],
  ['t', "lines with the engine's own stamp"],
  ['w', 'log at full height'],
  ['↑ ↓, Enter', 'in the log: choose a line, open or close its fold'],
  ['Space', 'replay: play, pause'],
  ['← →', 'replay: one event'],
  ['Esc', 'close, clear, back to live'],
];

/** Keys that write no character: nobody hits them by speaking. */
const ALWAYS = /^[↑←]|^Esc/;

type Props = {
  readonly open: boolean;
  readonly close: () => void;
  /** Whether single keys do anything. */
  readonly single: boolean;
  readonly setSingle: (on: boolean) => void;
  /** Whether a screen reader is told of new lines of the log. */
  readonly aloud: boolean;
  readonly setAloud: (on: boolean) => void;
};

/** The list of keys, and whether they are on. None of them changes a host. */
export function Keys({ open, close, single, setSingle, aloud, setAloud }: Props): JSX.Element {
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
        Single keys are on
      </label>
      <label>
        <input
          type="checkbox"
          checked={aloud}
          onChange={({ currentTarget }) => setAloud(currentTarget.checked)}
        />{' '}
        Read new lines: how many came, every 10 s
      </label>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt class={single || ALWAYS.test(key) ? '' : 'off'}>
              <kbd>{key}</kbd>
            </dt>
            <dd class={single || ALWAYS.test(key) ? '' : 'off'}>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
