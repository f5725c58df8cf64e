import { script, type Unreachable } from '../domain/command.ts';
import type { Host } from './host.ts';

/** $1 path, $2 first byte, $3 follow or once. stderr: `M <now> <changed> <bytes>` first, then `B` each second. */
const READ_LOG = String.raw`
R="$FIRSTLIGHT_ROOT"
case $1 in "$R"/*) f=$1 ;; /*) f="$R$1" ;; "~/"*) f="$HOME/${'$'}{1#??}" ;; *) f="$HOME/$1" ;; esac
[ -e "$f" ] || exit 43
[ -f "$f" ] || exit 44
[ -r "$f" ] || exit 45
printf 'M %s %s %s\n' "$(date +%s)" "$(stat -L -c %Y "$f" 2>/dev/null || date -r "$f" +%s)" "$(wc -c <"$f")" >&2
[ "$3" = follow ] || exec tail -c "+$2" "$f"
# The link's end shows as a pipe that nobody reads: the next beat fails, and tail must go with us.
trap '' PIPE
tail -c "+$2" -f "$f" 2>/dev/null & t=$!
trap 'kill $t 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM
while kill -0 $t 2>/dev/null; do printf 'B\n' >&2 || exit 1; sleep 1; done
`;

export type ReadLog =
  | { readonly kind: 'read' }
  | { readonly kind: 'unreadable'; readonly why: string }
  | { readonly kind: 'lost'; readonly failure: Unreachable };

/**
 * Reads a file on a host from a byte on (0 is the first), with `follow` on as it grows, until the signal is aborted,
 * which throws. A path that is not absolute begins in the home.
 */
export async function readLog(
  host: Host,
  path: string,
  options: {
    readonly fromByte: number;
    readonly follow: boolean;
    readonly signal: AbortSignal;
    readonly opened: (about: { readonly silentSeconds: number; readonly bytes: number }) => void;
    readonly bytes: (chunk: Uint8Array) => void;
  },
): Promise<ReadLog> {
  const { fromByte, follow, signal } = options;
  const ran = await host.stream(script(READ_LOG, [path, String(fromByte + 1), follow ? 'follow' : 'once']), {
    signal,
    stdout: options.bytes,
    stderrLine: (line) => {
      const [kind, now, changed, bytes] = line.trim().split(/\s+/);
      if (kind !== 'M') return;
      options.opened({
        silentSeconds: Math.max(0, Number(now) - Number(changed)) || 0,
        bytes: Number(bytes) || 0,
      });
    },
  });
  if (ran.kind === 'lost') return { kind: 'lost', failure: ran.failure };
  if (ran.kind === 'refused') return { kind: 'unreadable', why: ran.text };
  if (ran.kind === 'timeout') return { kind: 'unreadable', why: `no end after ${ran.seconds} s` };
  switch (ran.code) {
    case 0:
      return { kind: 'read' };
    case 43:
      return { kind: 'unreadable', why: 'there is no such file' };
    case 44:
      return { kind: 'unreadable', why: 'it is not a regular file' };
    case 45:
      return { kind: 'unreadable', why: 'permission denied' };
    default:
      return follow ? { kind: 'read' } : { kind: 'unreadable', why: `reading it ended with ${ran.code}` };
  }
}
