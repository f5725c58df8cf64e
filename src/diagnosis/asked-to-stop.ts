import type { LogLine } from '../domain/evidence.ts';
import { messageOf } from '../knowledge/engines/log-line.ts';
import { withoutUsers } from './user-words.ts';

const LAST_LINES = 60;
/** A user's words may reach from further up into the last lines. */
const LAST_WITH_USERS = 400;
const ASKED_TO_STOP =
  /SIGTERM received|[Rr]eceived (?:SIGTERM|SIGINT|signal (?:2|15)\b)|\bsignum=(?:2|15)\b|\bsignal=SIG(?:TERM|INT)\b|Shutting down FastAPI HTTP server|Application shutdown complete/;

/** Whether its last words are of somebody who asked it to stop: its exit code is then no news. */
export function wasAsked(lines: readonly LogLine[]): boolean {
  const own = withoutUsers(lines.slice(-LAST_WITH_USERS), (text) => messageOf(text) !== text);
  return own.slice(-LAST_LINES).some(({ text }) => ASKED_TO_STOP.test(text));
}
