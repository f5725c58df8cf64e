/** How bad a line of a log says it is. */
export type Level = 'error' | 'warning' | '';

/** Without any of these a line meets no pattern. */
const ERROR_PARTS = ['ERROR', 'rror:', 'xception:', 'Traceback ', 'CRITICAL', 'FATAL'];

/** By the words that engines, their libraries and Python put before what went wrong. */
export function levelOf(text: string): Level {
  if (
    ERROR_PARTS.some((part) => text.includes(part)) &&
    /\b(?:ERROR|CRITICAL|FATAL)\b|\w*(?:Error|Exception):|^Traceback /.test(text)
  )
    return 'error';
  return text.includes('WARN') && /\bWARN(?:ING)?\b/.test(text) ? 'warning' : '';
}
