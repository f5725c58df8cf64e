import type { UserError } from '../../domain/user-error.ts';
import { clean } from './clean.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { width, wrap, wrapAdvice } from './width.ts';

/** What, why, how to mend it, and whether anything was changed. */
export function renderUserError(error: UserError, changed: boolean, style: Style): string {
  const { paint, glyphs } = style;
  const mark = `${glyphs.failed} `;
  const room = style.columns - width(mark);
  const indent = ' '.repeat(width(mark));
  const lines = wrap(clean(error.message), room).map((line, index) =>
    index === 0 ? `${paint.bad(mark)}${paint.strong(line)}` : `${indent}${line}`,
  );
  const hint = clean(error.hint);
  const key =
    error.code === 'host-key-unknown' ? /SHA256:[A-Za-z0-9+/=]+/.exec(error.message)?.[0] : undefined;
  if (hint !== '') lines.push(...wrapAdvice(`do: ${hint}`, room).map((line) => `${indent}${line}`));
  if (key !== undefined) {
    const [or, flag] = ['or, once compared, add:', `--accept-host-key NODE=${key}`];
    const parts = width(or) + 1 + width(flag) <= room ? [`${or} ${flag}`] : [or, ...wrap(flag, room)];
    lines.push(...parts.map((line) => `${indent}${line}`));
  }
  lines.push(paint.quiet(`${indent}${CHANGED[changed ? 'yes' : 'no']}`));
  return finish(lines, style);
}

const CHANGED = {
  yes: 'Steps were carried out before this: firstlight runs lists the run.',
  no: 'Nothing was changed on any host.',
} as const;

/** A bug: whose mistake it is, and all that is needed to report it. */
export function renderBug(error: unknown, changed: boolean, version: string, style: Style): string {
  const { paint, glyphs } = style;
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return finish(
    [
      `${paint.bad(glyphs.failed)} ${paint.strong("This is our mistake, not your cluster's.")}`,
      `  firstlight ${version}, node ${process.version}, ${process.platform}`,
      ...clean(causes(error, stack))
        .split('\n')
        .map((line) => `  ${line}`),
      paint.quiet(`  ${CHANGED[changed ? 'yes' : 'no']}`),
    ],
    style,
  );
}

function causes(error: unknown, text: string, depth = 0): string {
  if (!(error instanceof Error) || error.cause === undefined || depth > 5) return text;
  const cause = error.cause;
  const said = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  return causes(cause, `${text}\nbecause: ${said}`, depth + 1);
}
