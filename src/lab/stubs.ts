import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quote } from '../domain/quote.ts';
import { quickStub } from './quick-calls.ts';

/** Tools that ask the lab's world. */
const ASKING = [
  'docker',
  'nvidia-smi',
  'systemctl',
  'sudo',
  'ip',
  'ss',
  'loginctl',
  'journalctl',
  'dmesg',
] as const;

/**
 * Tools whose answer stands in the host's own files, as plain sh: no process to start, no world to ask. `id` and
 * `whoami` know root by what the sudo stand-in sets.
 */
const PLAIN: Readonly<Record<string, string>> = {
  hostname: String.raw`read -r name <"$FIRSTLIGHT_ROOT/etc/hostname"
case "$1" in
  -I | --all-ip-addresses) exec ip -o -4 addr show | sed -n '/ lo /d; s/.* inet \([0-9.]*\).*/\1/p' | tr '\n' ' ' ;;
  -V | --version) echo "hostname (firstlight lab stand-in)" ;;
  '' | -s | -f | --short | --fqdn) echo "$name" ;;
  -i | --ip-address) getent hosts "$name" | cut -d' ' -f1 ;;
  *) echo 'hostname: you must be root to change the host name' >&2; exit 1 ;;
esac
`,
  uname: String.raw`read -r name <"$FIRSTLIGHT_ROOT/etc/hostname"
read -r release <"$FIRSTLIGHT_ROOT/proc/sys/kernel/osrelease"
version='#21-Ubuntu SMP PREEMPT_DYNAMIC Wed May 27 19:14:05 UTC 2026'
case "$1" in
  '' | -s) echo Linux ;;
  -n) echo "$name" ;;
  -r) echo "$release" ;;
  -v) echo "$version" ;;
  -m | -p | -i) echo aarch64 ;;
  -o) echo GNU/Linux ;;
  -a) echo "Linux $name $release $version aarch64 aarch64 aarch64 GNU/Linux" ;;
  -sr | -rs) echo "Linux $release" ;;
  -srm) echo "Linux $release aarch64" ;;
  -rm) echo "$release aarch64" ;;
  --version) echo "uname (firstlight lab stand-in)" ;;
  *) echo "uname: unrecognized option '$1'" >&2; exit 1 ;;
esac
`,
  id: String.raw`uid=${'${'}FIRSTLIGHT_LAB_UID:-1000}
user=$(awk -F: -v uid="$uid" '$3 == uid {print $1; exit}' "$FIRSTLIGHT_ROOT/etc/passwd")
case "$*" in
  --version) echo "id (firstlight lab stand-in)"; exit ;;
  -u | -g | -ru) echo "$uid"; exit ;;
  -un | -gn | '-u -n' | '-nu') echo "$user"; exit ;;
esac
groups="$uid($user)"; numbers=$uid; names=$user
[ "$uid" != 1000 ] || { groups="$groups,27(sudo),988(docker)"; numbers="$numbers 27 988"; names="$names sudo docker"; }
case "$*" in
  '') echo "uid=$uid($user) gid=$uid($user) groups=$groups" ;;
  -G) echo "$numbers" ;;
  -Gn | -nG | '-G -n') echo "$names" ;;
  *)
    for name in "$@"; do :; done
    line=$(grep "^$name:" "$FIRSTLIGHT_ROOT/etc/passwd") || { echo "id: '$name': no such user" >&2; exit 1; }
    number=$(printf %s "$line" | cut -d: -f3)
    case "$1" in
      -u) echo "$number" ;;
      -un) echo "$name" ;;
      *) echo "uid=$number($name) gid=$number($name) groups=$number($name)" ;;
    esac ;;
esac
`,
  whoami: 'exec id -un\n',
  groups: 'exec id -Gn\n',
  sync: String.raw`[ "$1" != --version ] || echo 'sync (firstlight lab stand-in)'
exit 0
`,
  getent: String.raw`case "$1" in
  hosts | ahosts | ahostsv4)
    database=$1; shift
    [ $# -gt 0 ] || { cat "$FIRSTLIGHT_ROOT/etc/hosts"; exit; }
    found=$(awk -v name="$1" '{sub(/#.*/, "")} $1 == name {print $1, $2; exit} {for (i = 2; i <= NF; i++) if ($i == name) {print $1, name}}' "$FIRSTLIGHT_ROOT/etc/hosts")
    if [ -z "$found" ]; then
      case "$1" in
        *[!0-9.]*) exit 2 ;;
        *) found="$1 $1" ;;
      esac
    fi
    if [ "$database" = hosts ]; then printf '%s\n' "$found" | awk '{printf "%-15s %s\n", $1, $2}'
    else printf '%s\n' "$found" | awk '{printf "%-15s STREAM %s\n%-15s DGRAM\n%-15s RAW\n", $1, $2, $1, $1}'; fi ;;
  passwd)
    [ -n "$2" ] || { cat "$FIRSTLIGHT_ROOT/etc/passwd"; exit; }
    awk -F: -v key="$2" '$1 == key || $3 == key {print; found = 1} END {exit found ? 0 : 2}' "$FIRSTLIGHT_ROOT/etc/passwd" ;;
  group)
    case "$2" in
      docker) echo 'docker:x:988:' ;;
      sudo) echo 'sudo:x:27:' ;;
      *) exit 2 ;;
    esac ;;
  --version) echo 'getent (firstlight lab stand-in)' ;;
  *) exit 2 ;;
esac
`,
  // A session of its own is seen in the host's /proc at once, before whatever runs in it can look for itself.
  setsid: String.raw`case "$1" in
  -f | --fork | -c | --ctty | -w | --wait) ;;
  *)
    folder="$FIRSTLIGHT_ROOT/proc/$$"
    if mkdir "$folder" 2>/dev/null; then
      own="/proc/$$"
      ln -s "$own/stat" "$own/status" "$own/statm" "$own/cmdline" "$own/comm" "$own/environ" "$own/cwd" "$folder/" 2>/dev/null
      echo '0::/user.slice/user-1000.slice/session-1.scope' >"$folder/cgroup"
    fi ;;
esac
for real in /usr/bin/setsid /bin/setsid; do
  [ ! -x "$real" ] || exec "$real" "$@"
done
echo 'setsid: not found' >&2; exit 127
`,
};

/** Folder of compiled files, also where this runs from source. */
const COMPILED = join(import.meta.dirname.replace(/\bsrc\b(?=[^/]*\/lab$|\/lab$)/, 'dist'));

/** Path of a compiled file of the lab. */
export function compiled(file: string): string {
  return join(COMPILED, file);
}

/** Writes the folders that hosts and engine images have on their PATH; returns them. */
export function writeStubs(
  folder: string,
  programs: readonly string[],
  alive: string,
): { readonly bin: string; readonly imageBin: string } {
  const bin = join(folder, 'bin');
  const imageBin = join(folder, 'image-bin');
  const node = quote(process.execPath);
  const standIn = quote(compiled('stand-in.js'));
  const put = (where: string, name: string, text: string): void => {
    mkdirSync(where, { recursive: true });
    writeFileSync(join(where, name), `#!/bin/sh\n${text}`);
    chmodSync(join(where, name), 0o755);
  };
  for (const name of ASKING)
    put(bin, name, `${quickStub(folder, name)}exec ${node} ${standIn} ${name} "$@"\n`);
  for (const [name, text] of Object.entries(PLAIN)) put(bin, name, text);
  for (const name of programs) {
    put(
      bin,
      name,
      `${node} ${standIn} --holder $$ ${name} "$@" || exit 1\nexec <${quote(alive)}\nwhile read -r _; do :; done\n`,
    );
  }
  const engine = quote(compiled('engine/main.js'));
  for (const name of ['sglang', 'vllm', 'ray', 'python3', 'python']) {
    put(imageBin, name, `exec ${node} ${engine} ${name} "$@"\n`);
  }
  // Installed on the hosts too, for recipes that run plain processes.
  for (const name of ['sglang', 'vllm', 'ray']) put(bin, name, `exec ${node} ${engine} ${name} "$@"\n`);
  for (const name of ['hostname', 'uname', 'id', 'whoami', 'getent']) put(imageBin, name, PLAIN[name] ?? '');
  put(imageBin, 'ip', `exec ${node} ${standIn} ip "$@"\n`);
  return { bin, imageBin };
}
