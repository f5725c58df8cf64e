import { NODE_FOLDER_SH } from '../../domain/node-folder.ts';
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
 *     D                     B                                      all before nvidia-smi, and what it named, is told
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
read -r up rest <"$R/proc/uptime" && printf 'T %s 100\n' "$up"
if [ -r "$R/proc/self/cgroup" ]; then
  while IFS= read -r line; do printf 'O %s\n' "$line"; done <"$R/proc/self/cgroup"
fi
# A process may write into its own arguments what looks like the name of the next file: the folder that stands
# before each is one that it cannot know.
at=$R/proc
[ -n "$1" ] && [ -n "$FL_MARK" ] && ln -s "$R/proc" "$1/$FL_MARK" 2>/dev/null && at=$1/$FL_MARK
# A process that ends while it is read makes mawk end, too, with what it had not told yet: then all is read once more.
whole() {
  tries=0
  until told=$("$@"); do tries=$((tries + 1)); [ $tries -lt 9 ] || break; done
  printf '%s\n' "$told"
}
# Of the pids in $1 their cgroup, whether their environment can be read, and their arguments; of those in $2 the
# arguments alone. One that has ended meanwhile leaves nothing.
details() {
  set -- "$1" "$2" $(for p in $1 $2; do printf '%s/%s/cmdline ' "$at" "$p"; done)
  [ $# -gt 2 ] || return 0
  asked=" $1 "
  shift 2
  head -v -c 4000 "$@" | tr '\000-\011\013-\037\177' '\001                               ' | awk -v at="==> $at/" -v asked="$asked" -v proc="$R/proc" '
    function tell() {
      if (pid == "") return
      if (!index(asked, " " pid " ")) { print "Y", pid, substr(text, 1, 1000); return }
      file = proc "/" pid "/cgroup"
      while ((got = (getline line < file)) > 0) print "C", pid, line
      close(file)
      if (got < 0) return
      file = proc "/" pid "/environ"
      got = (getline line < file)
      close(file)
      print "X", pid, (got >= 0), text
    }
    index($0, at) == 1 && / <==$/ {
      tell(); pid = substr($0, length(at) + 1); sub(/\/.*/, "", pid); text = ""; lines = 0; next
    }
    { text = (lines++ ? text " " : "") $0 }
    END { tell() }'
} 2>/dev/null
# First the pids that matter, then who listens, then all that run:
everyone() { ports | awk -v large=${String(LARGE_KIB)} '
  function want(pid) { if (!(pid in wanted)) { wanted[pid] = 1; pids = pids pid " " } }
  BEGIN { for (i = 1; i < ARGC; i++) dirs[i] = ARGV[i]; count = ARGC - 1; ARGC = 1 }
  NR > 2000 { next }
  $1 == "read" { from = $2; out[++k] = "L " $0; next }
  from != "ss" { if ($4 == "0A") out[++k] = "L hex " $2; next }
  {
    out[++k] = "L ss " $0; text = $0
    while (match(text, /pid=[0-9]+,fd=/)) {
      if (ports < 100) { ports++; want(substr(text, RSTART + 4, RLENGTH - 8)) }
      text = substr(text, RSTART + RLENGTH)
    }
  }
  END {
    for (i = 1; i <= count; i++) {
      dir = dirs[i]; pid = dir; sub(/.*\//, "", pid)
      file = dir "/stat"; text = ""
      while ((getline line < file) > 0) text = text " " line
      close(file)
      if (text == "") continue
      sub(/.*\) /, "", text); split(text, a, " ")
      # A thread of the kernel (PF_KTHREAD) and one that is dead have no memory.
      if (a[1] == "Z" || int(a[7] / 2097152) % 2 == 1) continue
      name = ""; uid = ""; all = -1; anon = -1; shared = 0
      file = dir "/status"
      while ((getline line < file) > 0) {
        key = substr(line, 1, 4)
        if (key == "Name") { name = line; sub(/^Name:[ \t]*/, "", name) }
        else if (key == "Uid:") { split(line, b); uid = b[3] }
        else if (key == "VmRS") { split(line, b); all = b[2] }
        else if (key == "RssA") { split(line, b); anon = b[2] }
        else if (key == "RssS") { split(line, b); shared = b[2]; break }
      }
      close(file)
      if (all < 0) continue
      own = anon < 0 ? all : anon + shared
      out[++k] = "P " pid " " a[2] " " a[3] " " a[4] " " uid " " own " " a[20] " " name
      if (own >= large && big < 100) { big++; want(pid) }
      # A service may keep a container by staying its client.
      if (name ~ /^(docker|podman)($| )/ && clients < 100) { clients++; want(pid) }
    }
    print pids
    for (i = 1; i <= k; i++) print out[i]
  }' "$R/proc"/[0-9]* 2>/dev/null; }
table=$(whole everyone)
seen=${'$'}{table%%
*}
table=${'$'}{table#*
}
printf '%s\n' "$table"
first=$(whole details "$seen" '')
printf '%s\n' "$first"
echo D
apps=$(smi --query-compute-apps=pid,gpu_uuid,used_memory,process_name --format=csv,noheader,nounits); rc=$?
printf 'R %s\n' "$rc"
# First the pids that nobody has looked at yet, then the rows.
rows=$(printf '%s\n' "$apps" | awk -v seen=" $seen " '
  NR > 2000 { exit }
  { rows[NR] = substr($0, 1, 500) }
  /^[0-9]+,/ { pid = $0; sub(/,.*/, "", pid); if (n < 200 && !index(seen, " " pid " ")) { n++; seen = seen pid " "; pids = pids pid " " } }
  END { print pids; for (i = 1; i in rows; i++) print "A", rows[i] }')
fresh=${'$'}{rows%%
*}
printf '%s\n' "${'$'}{rows#*
}"
seen="$seen $fresh"
# Three generations above each: what starts it again may be among them.
above=$(printf '%s\n' "$table" | awk -v seen="$seen" '
  $1 == "P" { up[$2] = $3 }
  END {
    n = split(seen, all, " ")
    for (i = 1; i <= n; i++) known[all[i]] = 1
    for (i = 1; i <= n; i++) {
      p = all[i]
      for (d = 0; d < 3 && (p in up) && up[p] > 1; d++) {
        p = up[p]
        if (!(p in known) && ++found <= 100) { known[p] = 1; printf "%s ", p }
      }
    }
  }')
second=$(whole details "$fresh" "$above")
printf '%s\n' "$second"
echo B
# The runner of a rank marks all that it starts: whatever outlives it is known by that, and by the folder as this
# login's own; somebody else's firstlight has another.
${NODE_FOLDER_SH}
for f in $(cd "$R/proc" && grep -lzF "FIRSTLIGHT_RANK=$FL/ranks/" $(for p in $seen; do printf '%s/environ ' "$p"; done) /dev/null 2>/dev/null); do
  printf 'M %s %s\n' "${'$'}{f%/environ}" "$(tr '\000-\037' '\n                               ' <"$R/proc/$f" | sed -n 's/^FIRSTLIGHT_RANK=//p' | head -n 1)"
done 2>/dev/null
uid=${'$'}{FL_UID:-$(id -u)}
# Names of units from the right end of each cgroup path, the system's in the first line and this user's own in the
# second; docker's and podman's scopes are no services.
units=
case $first$second in
  *.service*)
    units=$(printf '%s\n%s\n' "$first" "$second" | awk -v own="$uid" '
      $1 == "C" {
        n = split($0, part, "/"); user = ""; unit = ""
        for (i = 2; i <= n; i++) {
          if (part[i] ~ /^user@[0-9]+\.service$/) { user = part[i]; gsub(/[^0-9]/, "", user) }
          else if (part[i] ~ /\.service$/ && part[i] !~ /^-/) unit = part[i]
        }
        if (unit == "" || (user != "" && user != own) || ((user, unit) in known)) next
        known[user, unit] = 1
        if (user == "") system_ = system_ unit " "; else mine = mine unit " "
      }
      END { print system_; print mine }') ;;
esac
set -f
shown=
set -- ${'$'}{units%%
*}
if [ $# -gt 0 ] && command -v systemctl >/dev/null 2>&1; then
  shown=$(systemctl show -p Id,Restart,MainPID,TriggeredBy "$@" 2>&1 | sed 's/^/U /')
fi
case $units in
  *"
"*) set -- ${'$'}{units#*
} ;;
  *) set -- ;;
esac
if [ $# -gt 0 ] && command -v systemctl >/dev/null 2>&1; then
  XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR
  [ -n "$XDG_RUNTIME_DIR" ] || XDG_RUNTIME_DIR="$R/run/user/$uid"
  export XDG_RUNTIME_DIR
  shown="$shown
$(systemctl --user show -p Id,Restart,MainPID,TriggeredBy "$@" 2>&1 | sed 's/^/V /')"
fi
set +f
third=
case $shown in
  *MainPID=[1-9]*)
    printf '%s\n' "$shown"
    third=$(whole details "$(printf '%s\n' "$shown" | awk -v seen=" $seen " '
      /^[UV] MainPID=[1-9][0-9]*$/ { pid = $0; sub(/.*=/, "", pid); if (!index(seen, " " pid " ")) printf "%s ", pid }')" '')
    printf '%s\n' "$third" ;;
  *) printf '%s\n' "$shown" ;;
esac
# First the users that the file has no name for, then the names.
names=$(printf '%s\n%s\n%s\n%s\n' "$table" "$first" "$second" "$third" | awk -v file="$R/etc/passwd" '
  $1 == "P" { uid[$2] = $6 }
  $1 == "X" && ($2 in uid) { want[uid[$2]] = 1 }
  END {
    while ((getline line < file) > 0) {
      split(line, a, ":")
      if ((a[3] in want) && !(a[3] in name)) name[a[3]] = a[1]
    }
    for (u in want) if (!(u in name)) printf "%s ", u
    print ""
    for (u in name) print "W", u, name[u]
  }')
printf '%s\n' "${'$'}{names#*
}"
for u in ${'$'}{names%%
*}; do
  getent passwd "$u" 2>/dev/null | awk -F: '{print "W", $3, $1}'
done
echo E
`,
};
