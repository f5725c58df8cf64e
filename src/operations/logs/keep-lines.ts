/** Lines of one rank's log that stay in memory. */
const KEPT_LINES = 40_000;

/**
 * Adds lines to those that are kept. A chatty engine must not fill our memory: of a long log the first quarter and the
 * newest stay, since the beginning and the end tell the story.
 */
export function keepLines<Line>(kept: Line[], fresh: readonly Line[]): void {
  // One by one: a piece of a log may hold more lines than a call may have arguments.
  for (const line of fresh) kept.push(line);
  if (kept.length > KEPT_LINES) kept.splice(KEPT_LINES / 4, kept.length - KEPT_LINES);
}
