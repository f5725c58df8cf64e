import { randomBytes } from 'node:crypto';
import { script, type Unreachable } from '../domain/command.ts';
import type { Probe, ProbeOutput } from '../domain/probe.ts';
import { quote } from '../domain/quote.ts';
import type { Host, RunOptions } from './host.ts';

export type ProbesRan =
  | {
      readonly kind: 'ran';
      /** By the probe's name; a probe that could not even be started is missing. */
      readonly outputs: ReadonlyMap<string, ProbeOutput>;
      readonly milliseconds: number;
      /** The node's clock when the look began there; undefined where `date` gave nothing. */
      readonly nodeEpochSeconds: number | undefined;
      /** Our clock, ms: when the script was sent, and when the node's time had come back. */
      readonly sentAt: number;
      readonly receivedAt: number;
    }
  | { readonly kind: 'lost'; readonly failure: Unreachable };

/** Bytes kept of one probe's stdout, and of its stderr. */
const MOST_BYTES = 1024 * 1024;

/**
 * Runs all probes of one host in one round trip, side by side, each (the quick ones together) in a session of its own
 * with stdin from /dev/null and under its own timeout; one that cannot be ended (a hung driver) is left behind and told as timed
 * out. `header` is sh text that sets variables for them. Nothing is left on the node.
 */
export async function runProbes(
  host: Host,
  probes: readonly Probe[],
  header: string,
  { signal }: RunOptions,
): Promise<ProbesRan> {
  const chunks: Buffer[] = [];
  const sentAt = Date.now();
  let receivedAt = sentAt;
  const longest = Math.max(1, ...probes.map((probe) => probe.timeoutSeconds));
  const ran = await host.stream(
    { ...script(probesScript(probes, header)), timeoutSeconds: longest + 10 },
    {
      signal,
      stdout: (chunk) => {
        if (chunks.length === 0) receivedAt = Date.now();
        chunks.push(chunk);
      },
      stderrLine: () => undefined,
    },
  );
  if (ran.kind === 'lost') return ran;
  const { epoch, outputs } = parse(Buffer.concat(chunks), probes);
  if (ran.kind === 'timeout' && outputs.size === 0) {
    // The connection may have died unseen: then a new one says what is wrong.
    const failure = await host.connect({ signal });
    return { kind: 'lost', failure: failure ?? stuck(host.node.name, ran.seconds) };
  }
  return {
    kind: 'ran',
    outputs,
    milliseconds: Date.now() - sentAt,
    nodeEpochSeconds: epoch,
    sentAt,
    receivedAt,
  };
}

/** The host lets us in and runs nothing: a wedged kernel does so, and a home on a file server that hangs. */
function stuck(node: string, seconds: number): Unreachable {
  return {
    kind: 'unreachable',
    why: 'timeout-banner',
    sentence: `${node} lets SSH in, but runs nothing: a look had no answer in ${seconds} s. The host may be out of memory or wedged.`,
    remedy: `Wait a minute and try again; if it stays so, ${node} needs a restart at its power button`,
    text: '',
  };
}

/**
 * Probes tell a FIFO when they end, and one watcher tells it when their time is over: so nobody polls, and
 * nobody waits for a process that cannot be ended. The bench of looking runs it by plain ssh, as the limit.
 * @public
 */
export function probesScript(probes: readonly Probe[], header: string): string {
  // No process on the node can know these: so none can write into an output what reads as the end of one.
  const mark = randomBytes(8).toString('hex');
  const folder = randomBytes(4).toString('hex');
  const put = (name: string, text: string) => `printf '%s\n' ${quote(text)} >"$T/${name}"`;
  const files = probes.flatMap((_, index) => [`${index}.out`, `${index}.e`, `${index}.err`, `${index}.n`]);
  return [
    'date +%s.%N 2>/dev/null || date +%s',
    'LC_ALL=C; export LC_ALL; umask 077',
    'R="$FIRSTLIGHT_ROOT"; FL_UID=$(id -u); export FL_UID',
    'T=',
    // /tmp may be full or read-only on the very host that is looked at.
    'for d in "$R/tmp" "$R/dev/shm" "/run/user/$FL_UID" "$HOME"; do',
    `  T="$d/firstlight-look-$$-${folder}"`,
    '  mkdir "$T" 2>/dev/null && echo 1 >"$T/w" 2>/dev/null && [ -s "$T/w" ] && break',
    '  rm -rf "$T"; T=',
    'done',
    '[ -n "$T" ] || { echo "no folder to write to" >&2; exit 3; }',
    `trap 'rm -rf "$T"' EXIT; trap 'exit 1' HUP INT TERM PIPE`,
    'mkfifo "$T/f" && exec 3<>"$T/f" || exit 3',
    put('h', `R="$FIRSTLIGHT_ROOT"; FL_MARK=${mark}\n${header}`),
    ...probes.map((probe, index) => put(`${index}.sh`, `. "$1/h"\n${probe.script}`)),
    // With setsid the pid is the group's too; without it the probe's own pid is all there is to end.
    'if command -v setsid >/dev/null 2>&1; then S=setsid; else S=; fi',
    `one() { $S sh "$T/$1.sh" "$T" >"$T/$1.out" 2>"$T/$1.err" </dev/null 3>&- & p=$!; echo $p >"$T/$1.pid"; wait $p; echo $? >"$T/$1.c"; echo $1 >&3; }`,
    'put_end() { read p <"$T/$1.pid" || return; [ -s "$T/$1.c" ] && return; if [ -n "$S" ]; then kill -$2 -$p; else kill -$2 $p; fi; } 2>/dev/null',
    ...watcher(probes),
    ...quick(probes),
    ...probes.flatMap((probe, index) => (probe.quick ? [] : [`one ${index} &`])),
    `n=0; while [ $n -lt ${probes.length} ]; do read i <&3 || break; [ -e "$T/$i.d" ] || { : >"$T/$i.d"; n=$((n+1)); }; done`,
    'kill $W 2>/dev/null',
    // Of what is too long the beginning; then all of it at once, each file between marks of its own.
    `find "$T" -type f -size +${MOST_BYTES / 512} 2>/dev/null | while read -r f; do head -c ${MOST_BYTES} "$f" >"$f.cut" && mv "$f.cut" "$f"; done`,
    `marks() { c=late; [ -e "$T/$1.late" ] || read c <"$T/$1.c"; printf '\n${mark} %s %s\n' $1 $c >"$T/$1.n"; printf '\n${mark} e\n' >"$T/$1.e"; [ -e "$T/$1.out" ] || : >"$T/$1.out"; [ -e "$T/$1.err" ] || : >"$T/$1.err"; } 2>/dev/null`,
    ...probes.map((_, index) => `marks ${index}`),
    `printf '%s\n' ${mark}; cat ${files.map((file) => `"$T/${file}"`).join(' ')}`,
    'exit 0',
    '',
  ].join('\n');
}

/** Those that wait for nobody, one after the other in one process. One that hangs all the same is late with those behind it. */
function quick(probes: readonly Probe[]): readonly string[] {
  const those = probes.flatMap((probe, index) => (probe.quick ? [index] : [])).join(' ');
  if (those === '') return [];
  const each = `for i in ${those}; do`;
  return [
    `printf '%s\n' '${each} ( . "$1/$i.sh" ) >"$1/$i.out" 2>"$1/$i.err"; echo $? >"$1/$i.c"; done' >"$T/q.sh"`,
    '{',
    '  $S sh "$T/q.sh" "$T" </dev/null >/dev/null 2>&1 3>&- & p=$!',
    `  ${each} echo $p >"$T/$i.pid"; done`,
    '  wait $p',
    `  ${each} [ -s "$T/$i.c" ] || : >"$T/$i.late"; echo $i >&3; done`,
    '} &',
  ];
}

/** One process that sleeps from deadline to deadline: TERM at each, KILL half a second later. */
function watcher(probes: readonly Probe[]): readonly string[] {
  const deadlines = [...new Set(probes.map((probe) => probe.timeoutSeconds))].sort((a, b) => a - b);
  const naps = deadlines.flatMap((deadline, index) => {
    const due = probes.flatMap((probe, at) => (probe.timeoutSeconds === deadline ? [at] : []));
    return [
      `  nap ${deadline - (deadlines[index - 1] ?? 0)}`,
      ...due.map(
        (at) => `  [ -s "$T/${at}.c" ] || { : >"$T/${at}.late"; put_end ${at} TERM; late="$late ${at}"; }`,
      ),
      '  if [ -n "$late" ]; then (sleep 1; for i in $late; do put_end $i KILL; echo $i >&3; done) & late=; fi',
    ];
  });
  return [
    '{',
    `  s=; late=; trap 'kill $s; exit' TERM; nap() { sleep $1 & s=$!; wait $s; }`,
    ...naps,
    '} >/dev/null 2>&1 & W=$!',
  ];
}

function parse(
  all: Buffer,
  probes: readonly Probe[],
): { readonly epoch: number | undefined; readonly outputs: ReadonlyMap<string, ProbeOutput> } {
  const outputs = new Map<string, ProbeOutput>();
  const [time = '', mark = ''] = all.subarray(0, 200).toString().split('\n');
  const epoch = /^\d+(\.\d+)?$/.exec(time)?.[0];
  const end = new RegExp(`^${mark} (\\d+) (late|\\d+)\n`);
  const between = Buffer.from(`\n${mark} e\n`);
  const after = Buffer.from(`\n${mark} `);
  let at = time.length + mark.length + 2;
  while (/^[0-9a-f]{16}$/.test(mark)) {
    const errAt = all.indexOf(between, at);
    const endAt = errAt === -1 ? -1 : all.indexOf(after, errAt + between.length);
    const told = endAt === -1 ? null : end.exec(all.subarray(endAt + 1, endAt + 80).toString());
    if (told === null) break;
    const [line, index, code] = told;
    const probe = probes[Number(index)];
    if (probe === undefined) break;
    outputs.set(probe.name, {
      code: code === 'late' ? 124 : Number(code),
      stdout: all.subarray(at, errAt).toString(),
      stderr: all.subarray(errAt + between.length, endAt).toString(),
      timedOut: code === 'late',
    });
    at = endAt + 1 + line.length;
  }
  return { epoch: epoch === undefined ? undefined : Number(epoch), outputs };
}
