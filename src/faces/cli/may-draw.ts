const LEAST_COLUMNS = 60;
const LEAST_ROWS = 16;

/** Whether the stream is a terminal that the live view may draw on: at least 60 × 16, no CI, not dumb, not --plain. */
export function mayDraw(
  stream: { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number },
  env: Readonly<Record<string, string | undefined>>,
  plain: boolean,
): boolean {
  if (plain || stream.isTTY !== true || env['TERM'] === 'dumb') return false;
  if (env['CI'] !== undefined && env['CI'] !== '' && env['CI'] !== 'false') return false;
  return roomToDraw({ columns: stream.columns ?? 0, rows: stream.rows ?? 0 });
}

/** Whether the live view has room; a window that is made smaller while it draws gets plain lines. */
export function roomToDraw(size: { readonly columns: number; readonly rows: number }): boolean {
  return size.columns >= LEAST_COLUMNS && size.rows >= LEAST_ROWS;
}
