import { NODE_FOLDER_SH } from '../domain/node-folder.ts';
import { GUARD } from './guard-script.ts';

/**
 * Shell text that knows a rank's folder. Pids, sessions and signals are the kernel's, whatever the root prefix:
 * so `/proc` is read as it is where processes of ours are looked for.
 */
export const RANK_COMMON_SH = String.raw`
R="$FIRSTLIGHT_ROOT"
${NODE_FOLDER_SH}
d="$FL/ranks/$1"
ticks() { t=$(cat "$R/proc/$1/stat" 2>/dev/null) || return 0; t=${'$'}{t##*) }; set -- $t; shift 19 2>/dev/null && echo "$1"; }
boot() { cat "$R/proc/sys/kernel/random/boot_id" 2>/dev/null; }
same_boot() { [ "$(boot)" = "$(cat "$d/boot" 2>/dev/null)" ]; }
# is "<pid> <ticks>" of file $1 still that process
lives() { p= s=; read -r p s rest <"$1" || [ -n "$p" ] || return 1; kill -0 "$p" && [ "$(ticks "$p")" = "$s" ] && ! zombie "$p"; } 2>/dev/null
zombie() { case $(cat "/proc/$1/stat") in *") Z "*) return 0;; esac; return 1; } 2>/dev/null
nap() { sleep 0.1 2>/dev/null || sleep 1; }
# docker or podman, as the claim says
C=docker; case $(cat "$d/container" 2>/dev/null) in "podman "*) C=podman;; esac
runs() { [ "$("$C" inspect -f '{{.State.Running}}' "firstlight-$1" </dev/null 2>/dev/null)" = true ]; }
`;

/**
 * $1 name, $2 docker, podman or process, $3 the guard's reserve in KiB or `off`, $4 whether it is `auto` or `set`. Prints
 * `started`, `already` or `attached`. Files come as here-documents behind `FILES`.
 */
export function startScript(files: string): string {
  return `${RANK_COMMON_SH}
umask 077
mkdir -p "$FL/ranks" || exit 1
busy() { same_boot && { lives "$d/runner" || { ! [ -e "$d/runner" ] && lives "$d/starting"; }; } && ! [ -e "$d/exit" ]; }
how=start
if ! said=$(mkdir "$d" 2>&1); then
  [ -d "$d" ] || { echo "$d cannot be made: ${'$'}{said##*: }" >&2; exit 1; }
  if busy; then echo already; exit 0; fi
  if [ "$2" != process ] && [ -f "$d/container" ] && runs "$1"; then how=attach; rm -f "$d/exit" "$d/runner"
  else
    if same_boot && lives "$d/guard"; then kill "$p" 2>/dev/null; fi
    n=1; while [ -e "$d~$n" ]; do n=$((n+1)); done
    mv "$d" "$d~$n" && mkdir "$d" || { echo "the claim $d cannot be renewed" >&2; exit 1; }
    [ "$2" = process ] || "$2" rm -f "firstlight-$1" </dev/null >/dev/null 2>&1
  fi
fi
echo "$$ $(ticks $$)" >"$d/starting"
boot >"$d/boot"
if [ $how = start ]; then
: >"$d/log"
${files}
[ "$2" = process ] || echo "$2 firstlight-$1" >"$d/container"
fi
cat >"$d/run.sh" <<'FIRSTLIGHT_RUN'
${RUNNER}
FIRSTLIGHT_RUN
cat >"$d/guard.sh" <<'FIRSTLIGHT_GUARD'
${GUARD}
FIRSTLIGHT_GUARD
if command -v setsid >/dev/null 2>&1; then S=setsid; else S=nohup; fi
$S sh "$d/run.sh" "$1" "$2" $how "$3" "$4" </dev/null >/dev/null 2>"$d/runner.err" &
i=0; while ! [ -e "$d/runner" ] && [ $i -lt 50 ]; do nap; i=$((i+1)); done
[ -e "$d/runner" ] || { echo "the rank runner did not start" >&2; cat "$d/runner.err" >&2; exit 1; }
rm -f "$d/starting"
[ $how = start ] && echo started || echo attached
`;
}

/** Holds one rank: $1 name, $2 docker, podman or process, $3 start or attach, $4 and $5 for its guard; the engine itself comes through $3 engine. */
const RUNNER = String.raw`#!/bin/sh
# firstlight's rank runner: starts the rank, writes its log and its exit code. See command.sh for the rank itself.
${RANK_COMMON_SH}
cd "$d" || exit 1
if [ "$3" = engine ]; then
  # Whoever is started from here carries this mark, so that a stop finds all of them.
  FIRSTLIGHT_RANK="$d/"; export FIRSTLIGHT_RANK
  echo "$$ $(ticks $$)" >engine
  cd "$HOME"
  # C's stdio keeps the last 4 KiB to itself where stdout is a file: NCCL's words come through it, too late or never.
  B=; if stdbuf -oL true 2>/dev/null; then B='stdbuf -oL'; fi
  # Background jobs of sh ignore these two for ever; engines wait for them.
  if env --default-signal=INT,QUIT true 2>/dev/null; then exec env --default-signal=INT,QUIT $B sh "$d/command.sh"; fi
  exec $B sh "$d/command.sh"
fi
trap ':' HUP TERM
echo "$$ $(ticks $$)" >runner.new && mv runner.new runner
end() { echo "$1" >exit.new && mv exit.new exit; exit 0; }
# In a session of its own, so that it outlives this runner, and no stop of the rank's session meets it.
guard() {
  [ "$4" != off ] && ! lives guard || return 0
  if command -v setsid >/dev/null 2>&1; then S=setsid; else S=nohup; fi
  $S sh guard.sh "$1" "$2" "$4" "$5" </dev/null >/dev/null 2>guard.err &
}
if [ "$2" = process ]; then
  guard "$@"
  # In the background, since sh writes "Terminated" into the log of a foreground job that a signal ended.
  sh run.sh "$1" "$2" engine >>log 2>&1 </dev/null & e=$!
  while :; do wait $e; code=$?; kill -0 $e 2>/dev/null || end $code; done
fi
c="firstlight-$1"
C=$2
if [ "$3" = start ]; then
  sh command.sh >/dev/null 2>run.err </dev/null || { code=$?; cat run.err >>log; end $code; }
fi
guard "$@"
follow() {
  have=$(wc -c <log)
  if [ $((have)) = 0 ]; then "$C" logs -f --timestamps "$c" >>log 2>&1 </dev/null
  else
    # A container's log only grows, and ours is its beginning.
    "$C" logs -f --timestamps "$c" 2>&1 </dev/null | { dd bs=$((have)) count=1 iflag=fullblock of=/dev/null 2>/dev/null; cat; } >>log
  fi
}
while :; do
  follow & l=$!
  code=$("$C" wait "$c" 2>/dev/null </dev/null)
  wait $l
  case $code in *[!0-9]*|'') ;; *) end "$code" ;; esac
  # The daemon restarts under running containers: wait for it.
  i=0; until "$C" inspect "$c" >/dev/null 2>&1 </dev/null; do i=$((i+1)); [ $i -gt 30 ] && end 255; sleep 1; done
done`;

/** What somebody else started is stopped by its very identity, and a container of theirs is left to be started again. */
const STOP_ADOPTED = String.raw`if [ -f "$d/adopted" ]; then
  read -r kind id t <"$d/adopted"
  if [ "$kind" = process ]; then
    here() { same_boot && [ "$(ticks "$1")" = "$2" ] && ! zombie "$1"; }
    # Its children as they are now: what outlives it is ended after it.
    below() { cat /proc/[0-9]*/stat 2>/dev/null | awk -v top="$id" '{ p = $1; sub(/^.*\) /, ""); up[p] = $2; at[p] = $20 } END { for (p in up) { q = p; n = 0; while (q in up && q != top && n < 64) { q = up[q]; n++ } if (q == top && p != top) print p, at[p] } }'; }
    if here "$id" "$t"; then
      kids=$(below)
      kill -TERM "$id" 2>/dev/null || { echo "this user may not end pid $id; whoever started it can"; exit 1; }
      until=$(($(date +%s) + $2))
      while here "$id" "$t" && [ "$(date +%s)" -lt $until ]; do nap; done
      here "$id" "$t" && kill -KILL "$id" 2>/dev/null
      nap
      printf '%s\n' "$kids" | while read -r k kt; do [ -n "$k" ] && here "$k" "$kt" && kill -KILL "$k" 2>/dev/null; done
      i=0; while here "$id" "$t" && [ $i -lt 50 ]; do nap; i=$((i+1)); done
      if here "$id" "$t"; then echo "pid $id does not end"; exit 1; fi
    fi
  else
    up() { [ "$("$kind" inspect -f '{{.State.Running}}' "$id" </dev/null 2>/dev/null)" = true ]; }
    if up; then "$kind" stop -t "$2" "$id" </dev/null >/dev/null 2>&1; fi
    if up; then echo "the container $id does not end"; exit 1; fi
  fi
  i=0; while lives "$d/runner" && [ $i -lt 30 ]; do nap; i=$((i+1)); done
  if lives "$d/runner"; then kill -KILL "$p" 2>/dev/null; fi
  echo stopped; exit 0
fi`;

/** $1 name, $2 seconds of grace. Exit 0 when nothing of the rank is left; else its remains are on stdout. */
export const STOP_SCRIPT = String.raw`${RANK_COMMON_SH}
[ -d "$d" ] || { echo absent; exit 0; }
: >"$d/stopping"
${STOP_ADOPTED}
if [ -f "$d/container" ]; then
  if runs "$1"; then "$C" stop -t "$2" "firstlight-$1" </dev/null >/dev/null 2>&1; fi
  if runs "$1"; then "$C" kill "firstlight-$1" </dev/null >/dev/null 2>&1; nap; fi
fi
S=
if same_boot && [ -f "$d/runner" ]; then
  read -r S rest <"$d/runner"
  # A pid that somebody else has by now leads no session of ours.
  if [ -e "/proc/$S/stat" ] && ! lives "$d/runner"; then S=; fi
fi
members() {
  same_boot || return 0
  {
    [ -n "$S" ] && cat /proc/[0-9]*/stat 2>/dev/null | awk -v s="$S" '{p = $1; sub(/^.*\) /, ""); if ($4 == s && p != s && $1 != "Z") print p}'
    [ -f "$d/container" ] || for f in $(grep -lzF "FIRSTLIGHT_RANK=$d/" /proc/[0-9]*/environ 2>/dev/null); do f=${'$'}{f%/environ}; echo "${'$'}{f##*/}"; done
  } | sort -u
}
if ! [ -f "$d/container" ] && same_boot; then
  lives "$d/engine" && kill -TERM "$p" 2>/dev/null
  until=$(($(date +%s) + $2))
  while lives "$d/engine" && [ "$(date +%s)" -lt $until ]; do nap; done
  # Children outlive their engine for a moment; then they are made to end.
  i=0; m=$(members)
  while [ -n "$m" ] && [ $i -lt 10 ] && ! lives "$d/engine"; do nap; i=$((i+1)); m=$(members); done
  i=0
  while [ -n "$m" ] && [ $i -lt 50 ]; do
    for p in $m; do kill -KILL "$p" 2>/dev/null; done
    nap; i=$((i+1)); m=$(members)
  done
  if [ -n "$m" ]; then
    echo "these processes of the rank do not end:"; ps -o pid=,stat=,args= -p "$(echo $m | tr ' ' ,)" 2>/dev/null || echo $m
    exit 1
  fi
fi
i=0; while ! [ -e "$d/exit" ] && lives "$d/runner" && [ $i -lt 50 ]; do nap; i=$((i+1)); done
if lives "$d/runner"; then kill -KILL "$p" 2>/dev/null; for p in $(members); do kill -KILL "$p" 2>/dev/null; done; fi
if [ -f "$d/container" ]; then
  if runs "$1"; then echo "the container firstlight-$1 does not end"; exit 1; fi
  "$C" rm -f "firstlight-$1" </dev/null >/dev/null 2>&1
fi
rm -f "$d/secrets.env"
# It would see within a second that its rank is gone.
if same_boot && lives "$d/guard"; then kill "$p" 2>/dev/null; fi
echo stopped
`;

/**
 * $1 name, $2 first byte, $3 an interface or nothing. stdout: the log from that byte on, as it grows. stderr:
 * `B <epoch> <MemAvailable kB>` each second, `W <guard.json>` whenever the guard has written something new, `L up` or
 * `L down` at first and whenever the interface has got or lost its carrier (operstate, kernel networking/operstates.rst),
 * at the end `X <code> <bytes of the log>`, or `G <bytes>` when the runner is gone without a word.
 */
export const FOLLOW_SCRIPT = String.raw`${RANK_COMMON_SH}
[ -f "$d/log" ] || { echo "G 0" >&2; exit 0; }
# The link's end shows as a pipe that nobody reads: the next beat fails, and tail must go with us.
trap '' PIPE
tail -c "+$2" -f "$d/log" 2>/dev/null & t=$!
trap 'kill $t 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM
size() { wc -c <"$d/log" | tr -d ' '; }
alive() { same_boot && { lives "$d/runner" || { ! [ -e "$d/runner" ] && lives "$d/starting"; }; }; }
beat() {
  a=; while read -r k v u; do [ "$k" = MemAvailable: ] && { a=$v; break; }; done <"$R/proc/meminfo"
  printf 'B %s %s\n' "$(date +%s.%N)" "$a" >&2
}
watched() { g=; { read -r g <"$d/guard.json"; } 2>/dev/null; [ "$g" = "$was" ] || { was=$g; printf 'W %s\n' "$g" >&2; }; }
linked() {
  l=; { read -r l <"$R/sys/class/net/$3/operstate"; } 2>/dev/null
  case $l in up) ;; down|lowerlayerdown) l=down;; *) return;; esac
  [ "$l" = "$link" ] || { link=$l; printf 'L %s\n' "$l" >&2; }
}
n=0 was= link=
while :; do
  if [ -s "$d/exit" ]; then
    read -r c <"$d/exit"
    # A guard that ended it, or looks whether the kernel did, has its last word still to write.
    i=0; while { [ -e "$d/guard.stop" ] || [ "$c" = 137 ]; } && lives "$d/guard" && [ $i -lt 30 ]; do nap; i=$((i+1)); done
    watched
    nap; printf 'X %s %s\n' "$c" "$(size)" >&2; exit 0
  fi
  if [ $n = 0 ]; then
    beat || exit 1
    watched
    [ -z "$3" ] || linked "$@"
    kill -0 $t 2>/dev/null || exit 1
    if ! alive && ! [ -s "$d/exit" ]; then nap; printf 'G %s\n' "$(size)" >&2; exit 0; fi
  fi
  # The end is told within a fifth of a second, the beat once in one.
  n=$(((n+1)%5)); sleep 0.2 2>/dev/null || { sleep 1; n=0; }
done
`;

/** $1 name, $2 ISO time. */
export const SERVING_SCRIPT = `${RANK_COMMON_SH}
[ -d "$d" ] || { echo "no such rank" >&2; exit 1; }
echo "$2" >"$d/serving.new" && mv "$d/serving.new" "$d/serving"
`;
