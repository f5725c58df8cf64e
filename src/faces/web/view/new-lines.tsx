import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { plural, thousands } from '../../../domain/units.ts';

const EVERY_MILLISECONDS = 10_000;

/** Tells a screen reader every ten seconds how many lines came: the log itself would never let it speak of else. */
export function NewLines({
  lines,
  errors,
}: {
  readonly lines: number;
  readonly errors: number;
}): JSX.Element {
  const now = useRef({ lines, errors });
  now.current = { lines, errors };
  const [text, setText] = useState('New lines of the log are read every ten seconds');
  useEffect(() => {
    let told = now.current;
    const timer = setInterval(() => {
      setText(newLines(told, now.current));
      told = now.current;
    }, EVERY_MILLISECONDS);
    return () => clearInterval(timer);
  }, []);
  return (
    <p class="unseen" role="status">
      {text}
    </p>
  );
}

type Counts = { readonly lines: number; readonly errors: number };

/** "214 new lines, 2 errors"; nothing where none came, and after another filter was chosen. */
function newLines(before: Counts, now: Counts): string {
  const lines = now.lines - before.lines;
  if (lines <= 0) return '';
  const errors = now.errors - before.errors;
  const words = `${thousands(lines)} new ${lines === 1 ? 'line' : 'lines'}`;
  return errors > 0 ? `${words}, ${plural(errors, 'error')}` : words;
}
