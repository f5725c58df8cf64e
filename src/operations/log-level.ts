/** How bad a line of a log says it is. */
export type Level = 'error' | 'warning' | '';

/** By the words that engines, their libraries and Python put before what went wrong. */
export function levelOf(text: string): Level {
  if (/\b(?:ERROR|CRITICAL|FATAL)\b|\b\w*(?:Error|Exception)\b:|^Traceback /.test(text)) return 'error';
  return /\bWARN(?:ING)?\b/.test(text) ? 'warning' : '';
}
