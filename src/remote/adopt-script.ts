import { RANK_COMMON_SH } from './rank-scripts.ts';

/**
 * Follows a rank that somebody else started, and never touches it: $1 name. Its log is copied into ours, so that it
 * stays when the container goes; a container's end leaves its exit code, a process's end none, since it is no child.
 */
const FOLLOWER = String.raw`#!/bin/sh
# firstlight's follower of a rank that somebody started by hand. It only reads.
${RANK_COMMON_SH}
cd "$d" || exit 1
trap ':' HUP TERM
echo "$$ $(ticks $$)" >runner.new && mv runner.new runner
read -r kind id t <adopted
if [ "$kind" = process ]; then
  l=
  if [ -s source ]; then tail -n +1 -f "$(cat source)" >>log 2>/dev/null </dev/null & l=$!; fi
  while [ "$(ticks "$id")" = "$t" ] && ! zombie "$id"; do sleep 1; done
  sleep 1
  [ -z "$l" ] || kill "$l" 2>/dev/null
  exit 0
fi
while :; do
  : >log
  "$kind" logs -f --timestamps "$id" >>log 2>&1 </dev/null & l=$!
  code=$("$kind" wait "$id" 2>/dev/null </dev/null)
  wait $l
  case $code in *[!0-9]*|'') ;; *) echo "$code" >exit.new && mv exit.new exit; exit 0 ;; esac
  # The daemon restarts under running containers: wait for it.
  i=0; until "$kind" inspect "$id" >/dev/null 2>&1 </dev/null; do i=$((i+1)); [ $i -gt 30 ] && exit 1; sleep 1; done
done`;

/**
 * $1 name, $2 process, docker or podman, $3 pid or container, $4 log file or nothing, $5 the record as JSON. Prints
 * `adopted` or `already`; exit 3 where there is no such thing, 4 where the name is taken by a rank that runs.
 */
export const ADOPT_SCRIPT = `${RANK_COMMON_SH}
umask 077
mkdir -p "$FL/ranks" || exit 1
what=
case $2 in
process)
  T=$(ticks "$3"); [ -n "$T" ] || { echo "there is no process $3"; exit 3; }
  what="process $3 $T"
  src=$4
  # A shell's redirection is the log, where none is named.
  if [ -z "$src" ]; then src=$(readlink "/proc/$3/fd/1" 2>/dev/null); [ -f "$src" ] || src=
  else case $src in "$R"/*) ;; /*) src="$R$src" ;; *) src="$HOME/$src" ;; esac
    [ -f "$src" ] && [ -r "$src" ] || { echo "there is no log $4 that can be read"; exit 3; }
  fi ;;
*)
  full=$("$2" inspect -f '{{.Id}}' "$3" 2>/dev/null </dev/null) && [ -n "$full" ] || { echo "there is no container $3"; exit 3; }
  [ "$("$2" inspect -f '{{.State.Running}}' "$full" 2>/dev/null </dev/null)" = true ] || { echo "the container $3 does not run"; exit 3; }
  what="$2 $full"; src= ;;
esac
alive() { same_boot && lives "$d/runner" && ! [ -e "$d/exit" ]; }
if ! mkdir "$d" 2>/dev/null; then
  if alive; then
    [ "$what" = "$(cat "$d/adopted" 2>/dev/null)" ] && { echo already; exit 0; }
    echo "a rank named $1 runs here already"; exit 4
  fi
  n=1; while [ -e "$d~$n" ]; do n=$((n+1)); done
  mv "$d" "$d~$n" && mkdir "$d" || { echo "the claim $d cannot be renewed"; exit 1; }
fi
boot >"$d/boot"
: >"$d/log"
[ -z "$src" ] || printf '%s\\n' "$src" >"$d/source"
printf '%s\\n' "$what" >"$d/adopted"
printf '%s\\n' "$5" >"$d/service.json"
cat >"$d/run.sh" <<'FIRSTLIGHT_RUN'
${FOLLOWER}
FIRSTLIGHT_RUN
if command -v setsid >/dev/null 2>&1; then S=setsid; else S=nohup; fi
$S sh "$d/run.sh" "$1" </dev/null >/dev/null 2>"$d/runner.err" &
i=0; while ! [ -e "$d/runner" ] && [ $i -lt 50 ]; do nap; i=$((i+1)); done
[ -e "$d/runner" ] || { echo "the follower did not start"; cat "$d/runner.err"; exit 1; }
echo adopted
`;
