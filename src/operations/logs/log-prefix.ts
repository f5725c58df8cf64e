import { messageOf } from '../../knowledge/engines/log-line.ts';

/** How much of a line is stamp, process and rank; an engine's note behind it does not count. */
export function prefixOf(text: string): number {
  const message = messageOf(text);
  return message !== '' && text.endsWith(message) ? text.length - message.length : 0;
}
