import {
  type Fact,
  known,
  type LockRecord,
  type RankRecord,
  type UndoRecord,
  unknown,
} from '../../domain/facts.ts';
import { parseGuard } from '../../domain/guard.ts';
import { isObject, numberAt, parseObject, textAt } from '../../domain/json.ts';
import { LOCK_DIR_SH, NODE_FOLDER_SH } from '../../domain/node-folder.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { ENGINES, type EngineName, type RecipeEdit } from '../../domain/recipe.ts';
import { headAndRest, linesOf, wholeNumber } from './output.ts';

/** What firstlight itself left on the node: its ranks, what it still owes, and the lock. */
export const ownRecordsProbe: Probe = {
  name: 'own-records',
  timeoutSeconds: 12,
  script: String.raw`
${NODE_FOLDER_SH}
${LOCK_DIR_SH}
line() { head -c 65536 "$1" | tr '\000-\037' ' '; echo; }
# Field 22 of stat, counted behind the name, which may hold blanks: a pid alone may be somebody else's by now. A zombie
# holds its pid until its parent asks for it, and runs no more.
ticks() { sed 's/.*) //' "$R/proc/$1/stat" 2>/dev/null | awk '{if ($1 == "Z" || $1 == "X") print "dead"; else print $20; exit}'; }
echo read
for d in "$FL"/ranks/*; do
  [ -f "$d/service.json" ] || continue
  case $d in *"~"*) case ${'$'}{d##*/} in *"~"*) continue ;; esac ;; esac
  printf 'rank %s\n' "$d"
  printf 'service '; line "$d/service.json"
  if [ -f "$d/exit" ]; then printf 'exit '; line "$d/exit"; fi
  if [ -f "$d/serving" ]; then printf 'serving '; line "$d/serving"; fi
  [ -f "$d/log" ] && printf 'log %s\n' "$(stat -L -c %s "$d/log" 2>/dev/null || wc -c <"$d/log")"
  if [ -f "$d/guard.json" ]; then
    pid=; ticks=; now=
    read -r pid ticks rest <"$d/guard"
    now=$(ticks "$pid")
    if [ "$now" = "$ticks" ] && kill -0 "$pid"; then printf 'guard alive '; else printf 'guard gone '; fi
    line "$d/guard.json"
  fi
  if [ -f "$d/runner" ]; then
    pid=; ticks=; now=
    read -r pid ticks rest <"$d/runner"
    now=$(ticks "$pid")
    if [ "$now" = dead ]; then printf 'runner gone %s\n' "$pid"
    elif [ -n "$now" ] && { [ "$now" = "$ticks" ] || [ -z "$ticks" ]; }; then printf 'runner alive %s\n' "$pid"
    elif [ -z "$now$ticks" ] && kill -0 "$pid"; then printf 'runner alive %s\n' "$pid"
    else printf 'runner gone %s\n' "$pid"; fi
  fi
done 2>/dev/null
for d in "$FL"/undo/*; do
  [ -f "$d/record.json" ] || continue
  state=; read -r state <"$d/state"
  printf 'undo %s ' "${'$'}{state:-pending}"; line "$d/record.json"
done 2>/dev/null
if [ -d "$FL_LOCK" ]; then
  t=$(stat -c %Y "$FL_LOCK/owner" 2>/dev/null || stat -c %Y "$FL_LOCK" 2>/dev/null || date -r "$FL_LOCK" +%s)
  printf 'lock %s ' "$(($(date +%s) - t))"
  if [ -f "$FL_LOCK/owner" ]; then line "$FL_LOCK/owner"; else echo; fi
fi 2>/dev/null
# The look itself writes where the lock would be, and goes elsewhere only where it cannot.
case ${'$'}{1-} in '' | "$R/tmp"/*) ;; *) [ -d "$FL_LOCK" ] || echo nolock ;; esac
echo end
`,
};

/** Whose lines these are, and the pids of the runners that live: whatever descends from one is a rank of ours. */
export type OwnRecords = {
  readonly ranks: readonly RankRecord[];
  readonly runners: ReadonlyMap<number, string>;
  readonly owed: readonly UndoRecord[];
  readonly lock: Fact<LockRecord | null>;
};

/** Lines of the own-records probe → ranks, undo that is owed, lock. `running` are names of containers that run. */
export function parseOwnRecords(
  output: ProbeOutput | undefined,
  running: ReadonlySet<string> = new Set(),
): Fact<OwnRecords> {
  const lines = output ? linesOf(output.stdout) : [];
  if (!lines.includes('read') || !lines.includes('end')) {
    return unknown(
      output?.timedOut ? 'reading our own records took too long' : 'our own records could not be read',
    );
  }
  const ranks: RankRecord[] = [];
  const runners = new Map<number, string>();
  for (const [folder, block] of rankBlocks(lines)) {
    const rank = toRank(folder, block, running);
    if (rank === undefined) continue;
    ranks.push(rank);
    const [state, pid] = headAndRest(block.get('runner') ?? '');
    if (state === 'alive' && wholeNumber(pid) !== undefined) runners.set(Number(pid), rank.name);
  }
  const lock = lines.find((line) => line.startsWith('lock '));
  return known({
    ranks,
    runners,
    owed: lines.flatMap((line) => (line.startsWith('undo ') ? toUndo(line.slice('undo '.length)) : [])),
    lock: lines.includes('nolock')
      ? unknown('its /tmp takes no files, so no lock can be taken there: it is full or read-only')
      : known(lock === undefined ? null : toLock(lock.slice('lock '.length))),
  });
}

function rankBlocks(lines: readonly string[]): readonly (readonly [string, ReadonlyMap<string, string>])[] {
  const blocks: [string, Map<string, string>][] = [];
  for (const line of lines) {
    const [key, rest] = headAndRest(line);
    if (key === 'rank') blocks.push([rest, new Map()]);
    else blocks.at(-1)?.[1].set(key, rest);
  }
  return blocks;
}

function toRank(
  folder: string,
  block: ReadonlyMap<string, string>,
  running: ReadonlySet<string>,
): RankRecord | undefined {
  const service = parseObject(block.get('service') ?? '');
  const engine = engineOf(service?.['engine']);
  if (service === undefined || engine === undefined || textAt(service, 'name') === '') return undefined;
  const name = textAt(service, 'name');
  const exit = block.get('exit');
  const [runner] = headAndRest(block.get('runner') ?? '');
  const serving = block.get('serving')?.trim();
  const state = stateOf(exit, runner, running.has(`firstlight-${name}`));
  return {
    name,
    recipe: textAt(service, 'recipe'),
    engine,
    rank: numberAt(service, 'rank') ?? 0,
    run: textAt(service, 'run'),
    attempt: numberAt(service, 'attempt') ?? 0,
    in: runtimeOf(textAt(service, 'in')),
    recipeDigest: textAt(service, 'recipeDigest'),
    effectiveDigest: textAt(service, 'effectiveDigest'),
    edits: editsOf(service['edits']),
    startedAt: textAt(service, 'startedAt'),
    state,
    exitCode: exitCode(exit, state),
    ...(serving ? { servingSince: serving } : {}),
    ...serverOf(service),
    ...guardOf(block.get('guard')),
    ...(service['adopted'] === true ? { adopted: true as const } : {}),
    folder,
    logBytes: wholeNumber(block.get('log')) ?? 0,
  };
}

/** "alive {…}" → what the guard put down. */
function guardOf(line: string | undefined): Pick<RankRecord, 'guard'> {
  const [life, json] = headAndRest(line ?? '');
  const record = parseGuard(json);
  return record === undefined ? {} : { guard: { ...record, alive: life === 'alive' } };
}

/** Where its server answers, under which name, and where the key comes from. */
function serverOf(
  service: Readonly<Record<string, unknown>>,
): Pick<RankRecord, 'health' | 'servedName' | 'apiKeyEnv' | 'ranks'> {
  const health = service['health'];
  const port = isObject(health) ? numberAt(health, 'port') : undefined;
  const servedName = textAt(service, 'servedName');
  const ranks = Number(service['ranks']);
  const apiKeyEnv = textAt(service, 'apiKeyEnv');
  return {
    ...(isObject(health) && port !== undefined
      ? { health: { address: textAt(health, 'address') || '127.0.0.1', port } }
      : {}),
    ...(servedName === '' ? {} : { servedName }),
    ...(Number.isInteger(ranks) && ranks > 0 ? { ranks } : {}),
    ...(apiKeyEnv === '' ? {} : { apiKeyEnv }),
  };
}

function stateOf(exit: string | undefined, runner: string, containerRuns: boolean): RankRecord['state'] {
  if (exit !== undefined) return 'ended';
  // A container outlives a runner that was stopped from outside.
  if (runner === 'alive' || containerRuns) return 'running';
  return runner === 'gone' ? 'ended' : 'starting';
}

function exitCode(exit: string | undefined, state: RankRecord['state']): Fact<number> {
  const code = wholeNumber(exit?.trim());
  if (code !== undefined) return known(code);
  return unknown(state === 'ended' ? 'its runner is gone and left no exit code' : 'it has not ended');
}

function runtimeOf(text: string): RankRecord['in'] {
  return text === 'docker' || text === 'podman' ? text : 'process';
}

function engineOf(value: unknown): EngineName | undefined {
  return ENGINES.find((engine) => engine === value);
}

function editsOf(value: unknown): readonly RecipeEdit[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((each: unknown) =>
    isObject(each) && textAt(each, 'path') !== ''
      ? [{ path: textAt(each, 'path'), from: each['from'], to: each['to'] }]
      : [],
  );
}

/** "pending {…}" → what waits; what was given back is no longer owed. */
function toUndo(line: string): readonly UndoRecord[] {
  const [state, json] = headAndRest(line);
  const record = parseObject(json);
  if (state !== 'pending' || record === undefined || textAt(record, 'id') === '') return [];
  return [
    {
      id: textAt(record, 'id'),
      run: textAt(record, 'run'),
      title: textAt(record, 'title'),
      at: textAt(record, 'at'),
      sudo: record['sudo'] === true,
      state: 'pending',
    },
  ];
}

/** "12 {…}": seconds since it was refreshed, by the node's clock, and its owner. */
function toLock(line: string): LockRecord {
  const [age, json] = headAndRest(line);
  const owner = parseObject(json) ?? {};
  return {
    owner: textAt(owner, 'owner') || 'unknown',
    run: textAt(owner, 'run'),
    since: textAt(owner, 'since'),
    // A clock that was set back makes no lock from the future.
    ageSeconds: Math.max(0, Number.isFinite(Number(age)) ? Number(age) : 0),
    host: textAt(owner, 'host'),
    pid: numberAt(owner, 'pid') ?? 0,
  };
}
