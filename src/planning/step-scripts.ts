import { NODE_FOLDER_SH } from '../domain/node-folder.ts';

/**
 * The shell of the clearing steps. POSIX sh for dash and busybox; `$R` is the root prefix, empty on every real
 * host. Each script looks before it acts, so that running it twice does no harm.
 */
const PREFIX = String.raw`R="${'$'}{FIRSTLIGHT_ROOT-}"`;

/** `ticks PID`: field 22 of stat, counted after the name, which may hold spaces; nothing for a zombie. */
const TICKS = String.raw`ticks() {
  line=$(sed 's/^.*) //' "$R/proc/$1/stat" 2>/dev/null) || return 1
  set -- $line
  [ $# -ge 20 ] && [ "$1" != Z ] && [ "$1" != X ] || return 1
  shift 19
  echo "$1"
}`;

/** `alive PID TICKS`: that very process is there and no zombie. */
const ALIVE = `${TICKS}\nalive() { [ "$(ticks "$1")" = "$2" ]; }`;

/**
 * `place PID`: the service or container that it runs in, nothing for what somebody started from a login.
 * `twins FOLDER`: "pid ticks" of every process with the command line recorded there that runs in that place or in none.
 */
const TWINS = String.raw`place() {
  tr / '\n' <"$R/proc/$1/cgroup" 2>/dev/null | grep -E '(\.service|[0-9a-f]{64}(\.scope)?)$' | grep -v '^user@' | sort -u | tail -n 1
}
twins() {
  sum=$(cksum <"$1/argv")
  own=$(cat "$1/place" 2>/dev/null)
  # One read of all: on a host with thousands of processes a comparison each takes many seconds.
  cksum "$R"/proc/[0-9]*/cmdline 2>/dev/null | while read -r crc size file; do
    [ "$crc $size" = "$sum" ] || continue
    p=${'$'}{file%/cmdline}
    p=${'$'}{p##*/}
    in=$(place "$p")
    [ -z "$in" ] || [ "$in" = "$own" ] || continue
    t=$(ticks "$p") && echo "$p $t"
  done
}`;

/** $1 pid, $2 start ticks → 0 while it is the process that was seen. */
export const SAME_PROCESS_SH = `${PREFIX}\n${ALIVE}\nalive "$1" "$2"`;

/**
 * $1 pid, $2 start ticks, $3 step id, $4 home of the SSH user (root's own is not meant), $5 "record" or "forget",
 * $6 its user.
 * What is needed to start it again is written before the signal: argv for the look, and a script whose words are
 * quoted, so that newlines in arguments survive. Mode 0600 in a folder of mode 0700.
 */
export const STOP_PROCESS_SH = String.raw`${PREFIX}
[ -z "$4" ] || HOME=$4
${NODE_FOLDER_SH}
${ALIVE}
${TWINS}
quoted() {
  xargs -0 -n 4096 -x sh -c 'for word; do printf "'"'"'"; printf %s "$word" | sed "s/'"'"'/'"'"'\\\\'"'"''"'"'/g"; printf "'"'"' "; done' sh
}
alive "$1" "$2" || { echo 'it had ended by itself'; exit 0; }
if [ "$5" = record ]; then
  d="$FL/undo/$3"
  umask 077
  mkdir -p "$d" || exit 1
  cat "$R/proc/$1/cmdline" >"$d/argv" || exit 1
  [ -s "$d/argv" ] || { echo 'its command line could not be read, so it was left alone' >&2; exit 1; }
  place "$1" >"$d/place"
  readlink "$R/proc/$1/cwd" >"$d/cwd" || { echo 'its folder could not be read, so it was left alone' >&2; exit 1; }
  { printf 'exec env -i '; quoted <"$R/proc/$1/environ" && quoted <"$d/argv" && echo '</dev/null'; } >"$d/start.sh" 2>/dev/null ||
    { echo 'its environment could not be read, so it was left alone' >&2; exit 1; }
  printf '%s\n' "$6" >"$d/user"
fi
kill -TERM "$1" || exit 1
n=0
while alive "$1" "$2"; do
  n=$((n + 1))
  if [ "$n" -eq 20 ]; then kill -KILL "$1"; fi
  if [ "$n" -ge 30 ]; then echo 'it is still there after SIGKILL' >&2; exit 1; fi
  sleep 1
done
# Others that were started alike are not this one, and do not stand for it when it is to be given back.
if [ "$5" = record ]; then twins "$d" >"$d/twins"; fi
if [ "$n" -ge 20 ]; then echo 'it needed SIGKILL after 20 s'; else echo 'it ended on SIGTERM'; fi`;

/** $1 step id, $2 home of the SSH user. Starts the recorded process in a session of its own, unless it runs already. */
export const START_PROCESS_SH = String.raw`${PREFIX}
[ -z "$2" ] || HOME=$2
${NODE_FOLDER_SH}
${TICKS}
${TWINS}
umask 077
d="$FL/undo/$1"
[ -s "$d/start.sh" ] || { echo 'nothing was recorded, so it was never stopped'; exit 0; }
# Those that ran beside it, and those that were given back for other steps.
others=$(cat "$d/twins" 2>/dev/null; for o in "$FL"/undo/*/started; do [ "$o" = "$d/started" ] || cat "$o" 2>/dev/null; done)
running() {
  twins "$d" >"$d/now"
  while read -r one; do
    printf '%s\n' "$others" | grep -Fqx "$one" && continue
    echo "$one" >"$d/started"
    return 0
  done <"$d/now"
  return 1
}
if running; then echo 'it runs already'; exit 0; fi
cd "$(cat "$d/cwd")" || exit 1
user=$(cat "$d/user")
if [ "$user" = "$(id -un)" ]; then
  setsid sh "$d/start.sh" </dev/null >"$d/output" 2>&1 &
else
  setsid sudo -n -u "$user" sh -s <"$d/start.sh" >"$d/output" 2>&1 &
fi
n=0
while [ "$n" -lt 10 ]; do
  if running; then echo 'it runs again'; exit 0; fi
  n=$((n + 1))
  sleep 1
done
tail -n 3 "$d/output" >&2
exit 1`;

/** $1 runtime, $2 container id → 0 while it runs. */
export const CONTAINER_RUNS_SH = String.raw`[ "$("$1" inspect -f '{{.State.Running}}' "$2" 2>/dev/null)" = true ]`;

/** $1 runtime, $2 container id, $3 "hold" when its restart policy is to be taken off first. */
export const STOP_CONTAINER_SH = String.raw`if [ "$3" = hold ]; then "$1" update --restart=no "$2" >/dev/null || exit 1; fi
"$1" stop -t 30 "$2" >/dev/null`;

/** Pairs of pid and start ticks: each is asked to end, after five seconds made to; nothing that was not there is touched. */
export const END_ALL_SH = String.raw`${PREFIX}
${ALIVE}
each() {
  how=$1
  shift
  left=
  while [ $# -ge 2 ]; do
    if alive "$1" "$2"; then
      left="$left $1"
      [ -z "$how" ] || kill "-$how" "$1"
    fi
    shift 2
  done
  [ -n "$left" ]
}
each TERM "$@" || { echo 'it had ended by itself'; exit 0; }
n=0
while each '' "$@"; do
  n=$((n + 1))
  if [ "$n" -eq 5 ]; then each KILL "$@"; fi
  if [ "$n" -ge 15 ]; then echo "still there after SIGKILL:$left" >&2; exit 1; fi
  sleep 1
done`;

/**
 * $1 a model's folder. Tells the kernel that its files are not needed: their clean pages leave the page cache, which
 * takes no root, only leave to read them. GNU dd does it from coreutils 8.11 on; exit 3 where this dd does not.
 */
export const EVICT_FILES_SH = String.raw`${PREFIX}
d=$R$1
[ -d "$d" ] || d=$1
[ -d "$d" ] || { echo "there is no folder $1" >&2; exit 1; }
dd if=/dev/null of=/dev/null iflag=nocache count=0 2>/dev/null ||
  { echo 'the dd here cannot take files out of the page cache' >&2; exit 3; }
files() { LC_ALL=C awk '/^(Cached|Buffers):/ {sum += $2} END {print sum + 0}' "$R/proc/meminfo"; }
before=$(files)
sync
left=$(find -L "$d" -type f -size +2047k -exec sh -c 'for f; do dd if="$f" iflag=nocache count=0 2>/dev/null || echo "$f"; done' sh {} + 2>/dev/null | wc -l)
LC_ALL=C awk -v was="$before" -v now="$(files)" -v left="$((left))" 'BEGIN {
  gone = was - now; if (gone < 0) gone = 0
  printf "%.1f GiB left the page cache", gone / 1048576
  if (left > 0) printf "; %d file%s could not be opened", left, (left > 1 ? "s" : "")
  print ""
}'`;

/** $1 runtime, $2 container id, $3 its restart policy, empty to leave that alone. */
export const START_CONTAINER_SH = String.raw`runs=$("$1" inspect -f '{{.State.Running}}' "$2" 2>/dev/null) || { echo 'the container is gone' >&2; exit 1; }
if [ -n "$3" ]; then "$1" update --restart="$3" "$2" >/dev/null || exit 1; fi
[ "$runs" = true ] && exit 0
"$1" start "$2" >/dev/null || exit 1
sleep 1
# A container that its policy starts over and over counts as running meanwhile.
case $("$1" inspect -f '{{.State.Running}} {{.State.Restarting}}' "$2" 2>/dev/null) in 'true false') ;; *)
  echo 'it ended again right after its start' >&2; exit 1 ;;
esac`;

/** $1 unit, $2 uid of a user's manager or empty. `manager` runs systemctl with the words after it. */
const SYSTEMCTL = String.raw`unit=$1
manager() {
  if [ -z "$uid" ]; then systemctl "$@"
  elif [ "$uid" = "$(id -u)" ]; then XDG_RUNTIME_DIR="$R/run/user/$uid" systemctl --user "$@"
  else sudo -n -u "#$uid" env XDG_RUNTIME_DIR="$R/run/user/$uid" systemctl --user "$@"
  fi
}
uid=$2`;

export const UNIT_RUNS_SH = String.raw`${PREFIX}
${SYSTEMCTL}
case $(manager is-active "$unit" 2>/dev/null) in active | activating | reloading | deactivating) exit 0 ;; esac
exit 1`;

/**
 * $1 unit, $2 uid of a user's manager or empty, $3 step id, $4 home of the SSH user. Sockets, timers and paths that
 * would start the unit again stop with it. systemd forgets a unit of systemd-run once it has stopped, and what lies in
 * /run at a restart, so such a file is kept before.
 */
export const STOP_UNIT_SH = String.raw`${PREFIX}
[ -z "$4" ] || HOME=$4
${NODE_FOLDER_SH}
${SYSTEMCTL}
d="$FL/undo/$3"
told() { manager show -p "$1" --value "$2" 2>/dev/null; }
with=
for t in $(told TriggeredBy "$unit"); do
  if manager is-active --quiet "$t"; then with="$with $t"; fi
done
umask 077
for u in $with "$unit"; do
  file=$(told FragmentPath "$u")
  case $file in "$R"/run/*) ;; *) continue ;; esac
  mkdir -p "$d/units" && cat "$file" >"$d/units/$u" && [ -s "$d/units/$u" ] ||
    { echo "the unit file of $u lies in /run and could not be kept, so it was left alone" >&2; exit 1; }
done
if [ -n "$with" ]; then mkdir -p "$d" && echo $with >"$d/triggers" || exit 1; fi
manager stop $with "$unit" || exit 1
[ -z "$with" ] || echo "stopped with it, as they start it:$with"`;

/** $1 unit, $2 uid of a user's manager or empty, $3 step id, $4 home of the SSH user. */
export const START_UNIT_SH = String.raw`${PREFIX}
[ -z "$4" ] || HOME=$4
${NODE_FOLDER_SH}
${SYSTEMCTL}
d="$FL/undo/$3"
start() {
  if manager is-active --quiet "$1"; then return 0; fi
  if [ -s "$d/units/$1" ] && [ "$(manager show -p LoadState --value "$1")" = not-found ]; then
    to="$R/run/systemd/system"
    [ -z "$uid" ] || to="$R/run/user/$uid/systemd/user"
    mkdir -p "$to" && cat "$d/units/$1" >"$to/$1" || return 1
    if [ -n "$uid" ] && [ "$uid" != "$(id -u)" ]; then chown "$uid" "$R/run/user/$uid/systemd" "$to" "$to/$1"; fi
    manager daemon-reload || return 1
  fi
  manager start "$1"
}
for t in $(cat "$d/triggers" 2>/dev/null); do start "$t" || exit 1; done
if manager is-active --quiet "$unit"; then echo 'it runs already'; exit 0; fi
start "$unit" || exit 1
# A plain service counts as started before it has done anything.
sleep 1
manager is-active --quiet "$unit" || { echo 'it ended again right after its start' >&2; exit 1; }`;

/** $1 KiB that must be available; says how much is missing. */
export const AWAIT_MEMORY_SH = String.raw`${PREFIX}
LC_ALL=C awk -v need="$1" '/^MemAvailable:/ {
  gib = 1048576
  if ($2 >= need) { printf "%.1f GiB available\n", $2 / gib; exit 0 }
  printf "%.1f GiB available, %.1f GiB short of %.1f GiB\n", $2 / gib, (need - $2) / gib, need / gib
  exit 1
}' "$R/proc/meminfo"`;

/** $1 MiB that must be free over the first $2 GPUs; says how much is missing. */
export const AWAIT_GPU_MEMORY_SH = String.raw`nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -n "$2" |
  LC_ALL=C awk -v need="$1" '{ sum += $1 } END {
    if (sum >= need) { printf "%.1f GiB free\n", sum / 1024; exit 0 }
    printf "%.1f GiB free, %.1f GiB short of %.1f GiB\n", sum / 1024, (need - sum) / 1024, need / 1024
    exit 1
  }'`;

/** Needs root. 1 drops the page cache alone; only clean pages go, so what is dirty is written first. */
export const DROP_CACHE_SH = String.raw`${PREFIX}
sync
echo 1 >"$R/proc/sys/vm/drop_caches"`;
