import type { Level } from '../../domain/log-rows.ts';

/** Without any of these a line meets no pattern. */
const ERROR_PARTS = ['ERROR', 'rror:', 'xception:', 'Traceback ', 'CRITICAL', 'FATAL', '[E', '[F'];
const WARNING_PARTS = ['WARN', 'arning:', '[W'];

/** By the words that engines and Python put before what went wrong, and the letter of PyTorch's C++: "[W1129 10:00:09". */
export function levelOf(text: string): Level {
  if (
    ERROR_PARTS.some((part) => text.includes(part)) &&
    /\b(?:ERROR|CRITICAL|FATAL)\b|\w*(?:Error|Exception):|^Traceback |\[[EF]\d{4} \d\d:/.test(text)
  )
    return 'error';
  return WARNING_PARTS.some((part) => text.includes(part)) &&
    /\bWARN(?:ING)?\b|\w*Warning:|\[W\d{4} \d\d:/.test(text)
    ? 'warning'
    : '';
}
