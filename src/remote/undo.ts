import { type Command, type Ran, script } from '../domain/command.ts';
import { NODE_FOLDER_SH } from '../domain/node-folder.ts';
import type { Host, RunOptions } from './host.ts';
import { scriptOf } from './shell.ts';

/** What is written down before a step runs: how it is taken back, by whoever comes later. */
export type UndoToWrite = {
  /** Id of the step. */
  readonly id: string;
  readonly run: string;
  /** "start the container ollama again" */
  readonly title: string;
  /** ISO time. */
  readonly at: string;
  /** Whether giving back needs root. */
  readonly sudo: boolean;
  /** Looks first, so that running it twice does no harm. Its own `sudo` is not looked at. */
  readonly command: Command;
};

const HEAD = `R="$FIRSTLIGHT_ROOT"
${NODE_FOLDER_SH}
d="$FL/undo/$1"
`;

/** Writes a step's way back on its node. What is there already stays, unless it was given back before. */
export function writeUndo(host: Host, undo: UndoToWrite, { signal }: RunOptions): Promise<Ran> {
  checkId(undo.id);
  const { id, run, title, at, sudo, command } = undo;
  const record = JSON.stringify({ id, run, title, at, sudo });
  const text = [
    '#!/bin/sh',
    `# ${title.replaceAll(/[\r\n]+/g, ' ')} (firstlight run ${run})`,
    'R="$FIRSTLIGHT_ROOT"; FL_UNDO=$(cd "$(dirname "$0")" && pwd)',
    scriptOf(command),
  ].join('\n');
  let end = 'FIRSTLIGHT_UNDO';
  while (text.includes(end) || record.includes(end)) end += '_';
  const write = `${HEAD}
umask 077
mkdir -p "$FL/undo" || exit 1
s=; [ -f "$d/state" ] && read -r s <"$d/state"
[ "$s" = pending ] && [ -s "$d/undo.sh" ] && exit 0
# Half a way back, of something that was not done then, is none.
fail() { [ -s "$d/state" ] || rm -rf "$d"; exit 1; }
mkdir -p "$d" || fail
cat >"$d/record.json" <<'${end}' || fail
${record}
${end}
cat >"$d/undo.sh.new" <<'${end}' && mv "$d/undo.sh.new" "$d/undo.sh" || fail
${text}
${end}
echo pending >"$d/state.new" && mv "$d/state.new" "$d/state" || fail
sync "$d/state" "$d/undo.sh" "$d/record.json" 2>/dev/null || true
`;
  return host.run(script(write, [id], { timeoutSeconds: 30 }), { signal });
}

/** Notes whether a step is still to be given back. */
export function markUndo(
  host: Host,
  id: string,
  state: 'pending' | 'restored',
  { signal }: RunOptions,
): Promise<Ran> {
  checkId(id);
  const mark = `${HEAD}[ -d "$d" ] || { echo "no undo $1 here" >&2; exit 1; }\necho "$2" >"$d/state.new" && mv "$d/state.new" "$d/state"\n`;
  return host.run(script(mark, [id, state], { timeoutSeconds: 20 }), { signal });
}

/** Gives a step back and notes it. What the undo printed is in the result; its exit code too. */
export async function runUndo(
  host: Host,
  { id, sudo }: { readonly id: string; readonly sudo: boolean },
  options: RunOptions,
): Promise<Ran> {
  checkId(id);
  // root's home is another one: the path is worked out before.
  const find = `${HEAD}[ -f "$d/undo.sh" ] || { echo "no undo $1 here" >&2; exit 1; }\nprintf %s "$d"\n`;
  const found = await host.run(script(find, [id], { timeoutSeconds: 20 }), options);
  if (found.kind !== 'ran' || found.code !== 0) return found;
  const ran = await host.run({ argv: ['sh', `${found.stdout}/undo.sh`], sudo, timeoutSeconds: 180 }, options);
  if (ran.kind !== 'ran' || ran.code !== 0) return ran;
  const marked = await markUndo(host, id, 'restored', options);
  return marked.kind === 'ran' && marked.code === 0 ? ran : marked;
}

function checkId(id: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(id)) throw new Error(`${id} cannot be a step's id`);
}
