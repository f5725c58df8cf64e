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
  return (stream.columns ?? 0) >= LEAST_COLUMNS && (stream.rows ?? 0) >= LEAST_ROWS;
}
