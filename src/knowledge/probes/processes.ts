import type { Probe } from '../../domain/probe.ts';
import { SMI_SH } from './nvidia-smi.ts';
import { PORTS_SH } from './ports.ts';

/** Processes with at least this much memory of their own are looked at more closely. */
const LARGE_KIB = 256 * 1024;

/**
 * Everything by which memory is put down to its owner, in one pass over /proc. Lines:
 *
 *     T uptime ticks-per-second                                      O own cgroup line
 *     P pid ppid group session uid resident-KiB start-ticks name     every process that has memory
 *     C pid cgroup line     X pid environ-readable arguments         the ones that matter; arguments end in \001
 *     L listening socket                                             see ports.ts
 *     R code                A compute-apps row                       from nvidia-smi
 *     Y pid arguments                                                their parents, three generations up
 *     M pid folder                                                   the mark of a rank of ours, by its environment
 *     U|V key=value         systemd's view of their units: the system's, this user's own
 *     W uid name            E                                        users; the end was reached
 *
 * Resident is anonymous and shared memory: file pages are page cache, and come back without stopping anybody.
 * nvidia-smi comes after what /proc tells, so that a hang costs only what it alone knows.
 */
export const processesProbe: Probe = {
  name: 'processes',
  timeoutSeconds: 12,
  script: String.raw`${SMI_SH}${PORTS_SH}
read -r up rest <"$R/proc/uptime" && printf 'T %s %s\n' "$up" "$(getconf CLK_TCK 2>/dev/null || echo 100)"
sed 's/^/O /' "$R/proc/self/cgroup" 2>/dev/null
table=$(awk 'BEGIN {
  for (i = 1; i < ARGC; i++) {
    dir = ARGV[i]; pid = dir; sub(/.*\//, "", pid)
    name = ""; uid = ""; all = -1; anon = -1; shared = 0
    file = dir "/status"
    while ((getline line < file) > 0) {
      split(line, a, /[ \t]+/)
      if (a[1] == "Name:") { name = line; sub(/^Name:[ \t]*/, "", name) }
      else if (a[1] == "Uid:") uid = a[3]
      else if (a[1] == "VmRSS:") all = a[2]
      else if (a[1] == "RssAnon:") anon = a[2]
      else if (a[1] == "RssShmem:") shared = a[2]
    }
    close(file)
    if (all < 0) continue
    file = dir "/stat"; text = ""
    while ((getline line < file) > 0) text = text " " line
    close(file)
    if (text == "") continue
    sub(/.*\) /, "", text); split(text, a, " ")
    print "P", pid, a[2], a[3], a[4], uid, (anon < 0 ? all : anon + shared), a[20], name
  }
}' "$R/proc"/[0-9]* 2>/dev/null)
printf '%s\n' "$table"
seen=
details() {
  for p in $1; do
    case " $seen " in *" $p "*) continue ;; esac
    seen="$seen $p"
    # A process that ends between two reads leaves no line, or a line without its text.
    sed "s/^/C $p /" "$R/proc/$p/cgroup" || continue
    if (exec <"$R/proc/$p/environ"); then e=1; else e=0; fi
    printf 'X %s %s ' "$p" "$e"
    head -c 4000 "$R/proc/$p/cmdline" | tr '\000-\037\177' '\001                                '
    echo
  done 2>/dev/null
}
listening=$(ports)
printf '%s\n' "$listening" | sed 's/^/L /'
first=$(details "$({
  printf '%s\n' "$table" | awk '$1 == "P" && $7 >= ${String(LARGE_KIB)} {print $2}' | head -n 100
  # A service may keep a container by staying its client.
  printf '%s\n' "$table" | awk '$1 == "P" && ($9 == "docker" || $9 == "podman") {print $2}' | head -n 100
  printf '%s\n' "$listening" | grep -o 'pid=[0-9]*,fd=' | sed 's/[^0-9]//g' | sort -u | head -n 100
} | tr '\n' ' ')")
seen=$(printf '%s\n' "$first" | awk '$1 == "X" {printf " %s", $2}')
printf '%s\n' "$first"
apps=$(smi --query-compute-apps=pid,gpu_uuid,used_memory,process_name --format=csv,noheader,nounits); rc=$?
printf 'R %s\n' "$rc"
printf '%s\n' "$apps" | head -n 2000 | cut -c 1-500 | sed 's/^/A /'
second=$(details "$(printf '%s\n' "$apps" | sed -n 's/^\([0-9][0-9]*\),.*/\1/p' | head -n 200 | tr '\n' ' ')")
printf '%s\n' "$second"
seen="$seen $(printf '%s\n' "$second" | awk '$1 == "X" {printf " %s", $2}')"
# The runner of a rank marks all that it starts: whatever outlives it is known by that.
for f in $(cd "$R/proc" && grep -lzF FIRSTLIGHT_RANK= $(for p in $seen; do printf '%s/environ ' "$p"; done) /dev/null 2>/dev/null); do
  printf 'M %s %s\n' "${'$'}{f%/environ}" "$(tr '\000-\037' '\n                               ' <"$R/proc/$f" | sed -n 's/^FIRSTLIGHT_RANK=//p' | head -n 1)"
done 2>/dev/null
# Three generations above each: what starts it again may be among them.
for p in $(printf '%s\n' "$table" | awk -v seen="$seen" '
  $1 == "P" { up[$2] = $3 }
  END {
    n = split(seen, all, " ")
    for (i = 1; i <= n; i++) known[all[i]] = 1
    for (i = 1; i <= n; i++) {
      p = all[i]
      for (d = 0; d < 3 && (p in up) && up[p] > 1; d++) { p = up[p]; if (!(p in known)) { known[p] = 1; print p } }
    }
  }' | head -n 100); do
  printf 'Y %s ' "$p"
  head -c 1000 "$R/proc/$p/cmdline" | tr '\000-\037\177' '\001                                '
  echo
done 2>/dev/null
# Name of the unit from the right end of each cgroup path; docker's and podman's scopes are no services.
units() {
  printf '%s\n%s\n' "$first" "$second" | awk -v own="$1" '$1 == "C" {
    n = split($0, part, "/"); user = ""; unit = ""
    for (i = 2; i <= n; i++) {
      if (part[i] ~ /^user@[0-9]+\.service$/) { user = part[i]; gsub(/[^0-9]/, "", user) }
      else if (part[i] ~ /\.service$/ && part[i] !~ /^-/) unit = part[i]
    }
    if (unit != "" && user == own && !(unit in seen)) { seen[unit] = 1; print unit }
  }'
}
uid=$(id -u)
set -f
shown=
set -- $(units '')
if [ $# -gt 0 ] && command -v systemctl >/dev/null 2>&1; then
  shown=$(systemctl show -p Id,Restart,MainPID,TriggeredBy "$@" 2>&1 | sed 's/^/U /')
fi
set -- $(units "$uid")
if [ $# -gt 0 ] && command -v systemctl >/dev/null 2>&1; then
  XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR
  [ -n "$XDG_RUNTIME_DIR" ] || XDG_RUNTIME_DIR="$R/run/user/$uid"
  export XDG_RUNTIME_DIR
  shown="$shown
$(systemctl --user show -p Id,Restart,MainPID,TriggeredBy "$@" 2>&1 | sed 's/^/V /')"
fi
set +f
printf '%s\n' "$shown"
third=$(details "$(printf '%s\n' "$shown" | sed -n 's/^[UV] MainPID=\([1-9][0-9]*\)$/\1/p' | tr '\n' ' ')")
printf '%s\n' "$third"
uids=$(printf '%s\n%s\n%s\n%s\n' "$table" "$first" "$second" "$third" | awk '
  $1 == "P" { uid[$2] = $6 }
  $1 == "X" && ($2 in uid) && !(uid[$2] in done) { done[uid[$2]] = 1; printf "%s ", uid[$2] }')
names=$(awk -F: -v want=" $uids" 'index(want, " " $3 " ") {print "W", $3, $1}' "$R/etc/passwd" 2>/dev/null)
printf '%s\n' "$names"
for u in $uids; do
  case "
$names" in *"
W $u "*) ;; *) getent passwd "$u" 2>/dev/null | awk -F: '{print "W", $3, $1}' ;; esac
done
echo E
`,
};
