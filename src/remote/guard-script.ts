import { NODE_FOLDER_SH } from '../domain/node-folder.ts';

/**
 * The guard of one rank: $1 name, $2 docker, podman or process, $3 the reserve in KiB, $4 `auto` where the reserve may
 * be less on a small host. It runs on the node in a session of its own, needs no SSH, and stops this rank and nothing
 * else. What each second costs is one `sleep`: all else is the shell's own `read` (dash, busybox). It goes when its
 * rank has gone, told by the start time of the rank's process, so a pid that somebody else has by now is not its rank.
 * Files in the rank's folder: `guard` "<pid> <start ticks>", `guard.json` its record (domain/guard.ts), `guard.stop`
 * once it has begun to stop the rank.
 */
export const GUARD = String.raw`#!/bin/sh
# firstlight's guard: looks at this host's memory each second, and stops this one rank before the host runs out of it.
R="$FIRSTLIGHT_ROOT"
${NODE_FOLDER_SH}
d="$FL/ranks/$1"
cd "$d" || exit 1
name=$1 in=$2 reserve=$3 auto=$4
P= T= S= ID= by=none why= state=starting
# "<state> <ppid> <pgrp> <session> …" of /proc/PID/stat, past the name, which may hold blanks
stat() { s=; { IFS= read -r s <"$R/proc/$1/stat"; } 2>/dev/null; s=${'$'}{s##*) }; [ -n "$s" ]; }
start() { stat "$1" || return 1; set -- $s; [ "$1" != Z ] || return 1; session=$4; shift 19; ticks=$1; }
# Is pid $1 still the process that started at $2. Where /proc tells no start time, the pid alone has to do.
same() { if [ -n "$2" ]; then start "$1" && [ "$ticks" = "$2" ]; else kill -0 "$1"; fi; } 2>/dev/null
clock() { t=; { read -r t rest <"$R/proc/uptime"; } 2>/dev/null; case $t in *.??) t=${'$'}{t%.*}${'$'}{t#*.};; *) t=$((was + 100));; esac; }

ticks= was=0
start $$; echo "$$ $ticks" >guard.new && mv guard.new guard
# Root may ask the kernel to spare it; for others it stays as it is.
(echo -900 >"/proc/$$/oom_score_adj") 2>/dev/null
trap 'exit 0' TERM INT

# Which rank it is, by process or container id and start time, never by a name again.
i=0
while [ $i -lt 300 ]; do
  [ -e exit ] && exit 0
  if [ "$in" = process ]; then
    if [ -s engine ]; then
      read -r P T rest <engine
      # The session is the rank's only where the rank runner leads it.
      session= r=
      start "$P"; read -r r rest <runner; [ "$session" != "$r" ] || S=$r
      break
    fi
  elif x=$("$in" inspect -f '{{.Id}} {{.State.Pid}}' "firstlight-$name" </dev/null 2>/dev/null); then
    ID=${'$'}{x%% *} P=${'$'}{x##* }
    case $P in 0|''|*[!0-9]*) P=;; *) ticks=; start "$P"; T=$ticks;; esac
    # Where others' processes are hidden (hidepid), the container is asked for instead.
    [ -n "$T" ] || P=
    case $ID in ''|true) ID="firstlight-$name";; esac
    break
  fi
  i=$((i+1)); sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }
done
[ -n "$P$ID" ] || exit 0

gone() {
  if [ "$in" = process ]; then
    same "$P" "$T" && return 1
    # Its children may outlive it, and hold what it held.
    n=$((n+1)); [ $n -gt 10 ] && [ $((n%5)) != 0 ] || left=$(members)
    [ -z "$left" ]; return
  fi
  [ ! -e exit ] || return 0
  if [ -n "$P" ]; then ! same "$P" "$T"; return; fi
  # A container whose process is not to be seen from here, as in a virtual machine.
  n=$(((n+1)%15)); [ $n = 0 ] || return 1
  [ "$("$in" inspect -f '{{.State.Running}}' "$ID" </dev/null 2>/dev/null)" != true ]
}
# Processes of the rank that outlive its first one: of its session, or with its mark.
members() {
  for f in /proc/[0-9]*/stat; do
    s=; { IFS= read -r s <"$f"; } 2>/dev/null || continue
    p=${'$'}{s%% *}; s=${'$'}{s##*) }
    set -- $s
    [ -z "$S" ] || [ "$4" != "$S" ] || [ "$1" = Z ] || [ "$p" = "$S" ] || echo "$p"
  done
  # The mark is the folder's path: who was started since under the same name has a guard of its own.
  { read -r p s <"$d/guard" && [ "$p" = $$ ]; } 2>/dev/null || return 0
  for f in $(grep -lzF "FIRSTLIGHT_RANK=$d/" /proc/[0-9]*/environ 2>/dev/null); do f=${'$'}{f%/environ}; echo "${'$'}{f##*/}"; done
}

# What can be had: MemAvailable, and where a cgroup of the rank is limited, what is left of that limit.
available() { a=; { while read -r k v u; do [ "$k" != MemAvailable: ] || { a=$v; break; }; done <"$R/proc/meminfo"; } 2>/dev/null; [ -n "$a" ]; }
# "<folder> <file of the limit> <file of the use> <prefix in memory.stat>" for every limited cgroup above pid $1
limits() {
  L= E=
  { while IFS= read -r c; do
    case $c in
      0::/*) up "${'$'}{c#0::}" "$R/sys/fs/cgroup" memory.max memory.current -;;
      *:memory:/*) up "/${'$'}{c#*:memory:/}" "$R/sys/fs/cgroup/memory" memory.limit_in_bytes memory.usage_in_bytes total_;;
    esac
  done <"$R/proc/$1/cgroup"; } 2>/dev/null
}
# The counter of the rank's own cgroup, the innermost that tells one: oom_kill in it counts kills for memory.
counter() { for x in memory.events memory.oom_control; do [ -n "$E" ] || [ ! -r "$1/$x" ] || E=$1/$x; done; }
killed() { o=0; [ -z "$E" ] || { while read -r k v; do [ "$k" != oom_kill ] || o=$v; done <"$E"; } 2>/dev/null; }
up() {
  c=${'$'}{1%/}
  while :; do
    counter "$2$c"
    x=; { read -r x <"$2$c/$3"; } 2>/dev/null
    case $x in ''|*[!0-9]*|????????????????*) ;; *) case $c in *' '*) ;; *) L="$L $2$c $3 $4 $5";; esac;; esac
    [ -n "$c" ] || return 0
    c=${'$'}{c%/*}
  done
}
# Least room, and the reserve that counts there, into m and q (KiB); mem says of what.
room() {
  available || a=
  m=$a q=$reserve mem=host
  set -- $L
  while [ $# -ge 4 ]; do
    x= y=; { read -r x <"$1/$2"; read -r y <"$1/$3"; } 2>/dev/null
    case $x$y in ''|*[!0-9]*) ;; *)
      x=$((x / 1024)) y=$((y / 1024)); h=$((x - y)) z=$((x / 8)); [ $z -lt $reserve ] || z=$reserve
      # Files in the cache are given back before anything is ended; their sum is asked for when it may matter.
      if [ $h -lt $((x / 4 + z)) ]; then
        { while read -r k v; do case $k in "${'$'}{4#-}active_file"|"${'$'}{4#-}inactive_file") h=$((h + v / 1024));; esac; done <"$1/memory.stat"; } 2>/dev/null
      fi
      if [ -z "$m" ] || [ $((h - z)) -lt $((m - q)) ]; then m=$h q=$z mem=cgroup; fi;;
    esac
    shift 4
  done
  [ -n "$m" ]
}

# The kernel's log: read where this user may; what stood in it before is left out.
K= klog=unknown
for f in "$R/dev/kmsg" "$R/var/log/kern.log"; do
  [ -r "$f" ] && (: <"$f") 2>/dev/null || continue
  [ -f "$f" ] || dd iflag=nonblock count=0 </dev/null >/dev/null 2>&1 || continue
  K=$f klog=read; break
done
fresh() { if [ -f "$K" ]; then exec cat; else exec dd bs=8192 iflag=nonblock; fi <&3 2>/dev/null; }
if [ -n "$K" ]; then
  exec 3<"$K"
  if [ -f "$K" ]; then tail -c 1 <&3 >/dev/null 2>&1; else (fresh) >/dev/null; fi
fi
driver() {
  [ -n "$K" ] || return 0
  x=$(fresh)
  while :; do case $x in *NV_ERR_NO_MEMORY*) x=${'$'}{x#*NV_ERR_NO_MEMORY} errors=$((errors+1));; *) return 0;; esac; done
}

# Means to stop it, tried without doing anything: the container's own program, a signal, sudo.
try() {
  case $1 in
    process) return 1;;
    docker|podman) "$1" inspect "$ID" </dev/null >/dev/null 2>&1;;
    signal) [ -n "$P" ] && kill -0 "$P" 2>/dev/null;;
    sudo) if [ -n "$P" ]; then sudo -n kill -0 "$P"; else sudo -n "$in" inspect "$ID"; fi </dev/null >/dev/null 2>&1;;
  esac
}
for x in "$in" signal sudo; do if try "$x"; then by=$x; break; fi; done

# Written in place and at one stroke: a rename would be one more process each time.
record() {
  j=
  [ -z "$1" ] || for x in $curve; do j="$j,[$(((${'$'}{x%:*} - t) / 100)),${'$'}{x#*:}]"; done
  printf '{"state":"%s","by":"%s","why":"%s","memory":"%s","reserveKib":%s,"kernelLog":"%s","driverErrors":%s,"oomKills":%s,"lowestKib":%s,"lowestAt":%s,"curve":[%s]}\n' \
    "$state" "$by" "$why" "$mem" "$q" "$klog" "$errors" "$kills" "$low" "$lowAt" "${'$'}{j#,}" >guard.json
}

# The rank, each time looked at anew before it is touched.
end() {
  case $1 in
    process|none) return 1;;
    docker|podman) "$1" kill "$ID" </dev/null >/dev/null 2>&1 &;;
    signal) if [ "$in" = process ]; then ! same "$P" "$T" || kill -KILL "$P"; for p in $(members); do kill -KILL "$p"; done; else [ -n "$P" ] && same "$P" "$T" && kill -KILL "$P"; fi 2>/dev/null;;
    sudo)
      if [ "$in" = process ]; then p=$(members); ! same "$P" "$T" || p="$P $p"; [ -z "$p" ] || sudo -n kill -KILL $p
      else sudo -n "$in" kill "$ID"; fi </dev/null >/dev/null 2>&1 &;;
  esac
}
over() {
  if [ -z "$P" ]; then [ "$("$in" inspect -f '{{.State.Running}}' "$ID" </dev/null 2>/dev/null)" != true ]; return; fi
  same "$P" "$T" && return 1
  [ "$in" != process ] || [ -z "$(members)" ]
}
halt() {
  why=$1
  state=stopping; : >guard.stop
  for x in "$by" "$in" signal sudo; do
    end "$x" || continue
    i=0; while [ $i -lt 15 ]; do over && { state=stopped by=$x; break 2; }; sleep 0.2 2>/dev/null || { sleep 1; i=$((i+4)); }; i=$((i+1)); done
  done
  [ $state = stopped ] || state=failed
  record curve
  [ $state = failed ] || exit 0
  # It could not be stopped: what follows is at least written down.
}

errors=0 n=0 d=0 l=0 low= lowAt=0 curve= samples=0 told=0 m=
clock; t0=$t was=$t e0=$(date +%s)
limits "${'$'}{P:-self}"
killed; o0=$o kills=0
if [ "$auto" = auto ]; then
  { while read -r k v u; do [ "$k" != MemTotal: ] || { [ $((v / 8)) -gt "$reserve" ] || reserve=$((v / 8)); break; }; done <"$R/proc/meminfo"; } 2>/dev/null
fi
room || { state=blind m=0 low=0; record; exit 0; }
if [ $by = none ]; then state=unguarded; else state=guards; fi
p1=$m t1=$t r1=0 r2=0 said=$m left=
while :; do
  clock; was=$t
  if room; then
    if [ -z "$low" ] || [ "$m" -lt "$low" ]; then low=$m lowAt=$((e0 + (t - t0) / 100)); fi
    curve="$curve $t:$m" samples=$((samples+1))
    [ $samples -le 60 ] || { curve=${'$'}{curve# } curve=" ${'$'}{curve#* }" samples=60; }
    [ $samples != 1 ] || record
    # The slowest of three seconds in a row: a cache that is allocated at one stroke is a step, and no fall.
    r=0; [ "$t" -le "$t1" ] || r=$(((p1 - m) * 100 / (t - t1)))
    rate=$r; for x in $r1 $r2; do [ $x -ge $rate ] || rate=$x; done
    [ $rate -gt 0 ] || rate=0
    # Reading the log is a process more: every third second of a fall.
    if [ $rate -gt 32768 ]; then d=$((d+1)) l=0; [ $((d%3)) != 1 ] || driver
    else d=0 l=$((l+1)); [ $((l%10)) != 0 ] || { driver; errors=0; }; fi
    if [ $state = guards ]; then
      if [ "$m" -lt "$q" ]; then halt reserve
      # Weights that are read fast fall as fast and then stop; so only near the reserve is it taken for an end.
      elif [ $rate -gt 0 ] && [ "$m" -lt $((rate * 2)) ] && [ "$m" -lt $((q * 3)) ]; then halt falling
      elif [ $errors -gt 0 ] && [ $rate -gt 32768 ] && { [ $errors -ge 3 ] || [ $((m - q)) -lt $((rate * 10)) ]; }; then halt driver
      fi
    fi
    r2=$r1 r1=$r p1=$m t1=$t
    # The lowest is written down when it has moved, every five seconds at most.
    if [ "$low" != "$said" ] && [ $((t - told)) -ge 500 ]; then record; said=$low told=$t; fi
  fi
  # A child that was killed for memory takes its rank with it only seconds later, and with another code.
  killed; [ $((o - o0)) = $kills ] || { kills=$((o - o0)); record; }
  sleep 1
  gone || continue
  # Who ended it, as far as the counters tell: nothing else is proof of a kill for memory.
  killed; kills=$((o - o0))
  if [ "$in" != process ] && [ "$("$in" inspect -f '{{.State.OOMKilled}}' "$ID" </dev/null 2>/dev/null)" = true ]; then kills=1; fi
  if [ "$low" != "$said" ] || [ $kills != 0 ]; then record; fi
  exit 0
done`;
