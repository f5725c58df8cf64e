import type { JSX } from 'preact';
import { optionParts } from '../data/options.ts';

/** A text that may name commands: their options stay in one piece. */
export function Words({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {optionParts(text).map((part, index) =>
        part.option ? (
          <span key={index} class="option">
            {part.text}
          </span>
        ) : (
          part.text
        ),
      )}
    </>
  );
}
