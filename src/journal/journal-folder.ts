import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/**
 * Where the journal lies: `$FIRSTLIGHT_HOME`, else `$XDG_STATE_HOME/firstlight`, else `~/.local/state/firstlight`.
 * A relative XDG_STATE_HOME is ignored, as the XDG Base Directory Specification asks.
 */
export function journalFolder(env: Readonly<Record<string, string | undefined>>): string {
  if (env['FIRSTLIGHT_HOME']) return resolve(env['FIRSTLIGHT_HOME']);
  const state = env['XDG_STATE_HOME'];
  if (state && isAbsolute(state)) return join(state, 'firstlight');
  return join(env['HOME'] || homedir(), '.local', 'state', 'firstlight');
}
