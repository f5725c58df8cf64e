import type { JSX } from 'preact';

const ROLE: Readonly<Record<string, string>> = {
  '✓': 'ok',
  '◔': 'working',
  '◐': 'wait',
  '!': 'wait',
  '✕': 'bad',
  '?': 'quiet',
  '○': 'quiet',
};

/** A state's glyph in its colour; the word beside it says the same, so readers skip it. */
export function Glyph({ of }: { readonly of: string }): JSX.Element {
  return (
    <span class={ROLE[of] ?? ''} aria-hidden="true">
      {of}
    </span>
  );
}
