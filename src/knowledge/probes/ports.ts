import { type Fact, known, type ListeningPort, unknown } from '../../domain/facts.ts';
import type { ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, linesOf, printable, wholeLines, wholeNumber } from './output.ts';

/**
 * sh: prints the listening TCP sockets as they are told, after a line that says by what. `-e` tells the cgroup of
 * another user's socket, where its pid needs root. Part of the processes probe, which tags them and looks closer at
 * whoever listens.
 */
export const PORTS_SH = String.raw`
ports() {
  out=
  if command -v ss >/dev/null 2>&1; then
    out=$(ss -ltnpeH 2>/dev/null) && [ -n "$out" ] || out=$(ss -ltnpH 2>/dev/null) && [ -n "$out" ] || out=$(ss -ltnp 2>/dev/null)
  fi
  if [ -n "$out" ]; then
    printf 'read ss\n%s\n' "$out"
    return
  fi
  for f in tcp tcp6; do
    [ -r "$R/proc/net/$f" ] && echo "read $f" && cat "$R/proc/net/$f"
  done
}
`;

/** A listening port with the unit or container it belongs to, where only the cgroup tells. */
export type SeenPort = ListeningPort & { readonly cgroup: string | undefined };

/** Rows of `ss -ltnpe`, or of /proc/net/tcp, → listening ports; of the processes probe those that begin with `L`. */
export function parsePorts(output: ProbeOutput | undefined): Fact<readonly SeenPort[]> {
  const all = linesOf(wholeLines(output));
  const lines = all.flatMap((line) => (line.startsWith('L ') ? [line.slice(2)] : []));
  if (!lines.some((line) => line.startsWith('read '))) return gaveNothing(output, 'listening ports');
  // What follows in the probe shows that all of it came.
  if (!all.some((line) => /^[PDE]( |$)/.test(line))) return unknown('the list of listening ports is cut off');
  const seen = lines.flatMap((line) => {
    if (line.startsWith('ss ')) return fromSs(line.slice(3));
    if (line.startsWith('hex ')) return fromHex(line.slice(4));
    return [];
  });
  return known(seen);
}

const NOT_OURS = 'it belongs to another user';

function fromSs(line: string): readonly SeenPort[] {
  const match = /^LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)\s+\S+\s*(.*)$/.exec(line);
  const port = wholeNumber(match?.[2]);
  if (match === null || port === undefined) return [];
  const rest = match[3] ?? '';
  // The name may hold quotes, commas and brackets; what follows it may not.
  const user = /users:\(\("(.*?)",pid=(\d+),fd=\d+\)/.exec(rest);
  const cgroup = /\bcgroup:(\/\S*)/.exec(rest)?.[1];
  const address = (match[1] ?? '').replace(/^\[(.*)\](%.*)?$/, '$1').replace(/%.*$/, '');
  return [
    {
      address: address === '*' ? '::' : address,
      port,
      pid: user ? known(Number(user[2])) : unknown(NOT_OURS),
      process: user ? known(printable(user[1] ?? '')) : processFrom(cgroup),
      cgroup,
    },
  ];
}

/** The last part of the path that a person knows: a unit or a container's scope. */
function processFrom(cgroup: string | undefined): Fact<string> {
  const unit = cgroup?.split('/').findLast((part) => part.endsWith('.service'));
  return unit === undefined ? unknown(NOT_OURS) : known(printable(unit));
}

/** "0100007F:1F90 1000" → 127.0.0.1, port 8080. Words of four bytes, each in the host's order, which is little endian. */
function fromHex(line: string): readonly SeenPort[] {
  const match = /^([0-9A-Fa-f]{8}|[0-9A-Fa-f]{32}):([0-9A-Fa-f]{4})\b/.exec(line);
  if (!match) return [];
  const bytes = (match[1] ?? '')
    .match(/.{8}/g)
    ?.flatMap((word) => (word.match(/../g) ?? []).reverse().map((byte) => Number.parseInt(byte, 16)));
  const why = 'only `ss` tells whose it is, and it is not installed';
  return [
    {
      address: bytes === undefined ? '' : addressText(bytes),
      port: Number.parseInt(match[2] ?? '0', 16),
      pid: unknown(why),
      process: unknown(why),
      cgroup: undefined,
    },
  ];
}

function addressText(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.every((byte) => byte === 0)) return '::';
  if (bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1) return '::1';
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (mapped) return `::ffff:${bytes.slice(12).join('.')}`;
  const words = Array.from({ length: 8 }, (_, at) => ((bytes[at * 2] ?? 0) << 8) | (bytes[at * 2 + 1] ?? 0));
  return words
    .map((word) => word.toString(16))
    .join(':')
    .replace(/(^|:)0(:0)+(:|$)/, '::');
}

/** Only what other parts of the program may see. */
export function plainPort(seen: SeenPort): ListeningPort {
  const { cgroup: _cgroup, ...port } = seen;
  return port;
}
