import type { Fact } from '../../domain/facts.ts';
import { type Attribution, attribute } from './cgroup.ts';
import type { SeenContainer } from './containers.ts';
import { maskSecrets } from './mask-secrets.ts';
import type { SeenPort } from './ports.ts';
import type { ProcessDetails, ProcessReading, ProcessRow } from './process-reading.ts';
import { hostsOthers, protectedWhy } from './protected-work.ts';

/** Everything that tells whose the memory is. */
export type HolderInput = {
  readonly processes: Fact<ProcessReading>;
  readonly containers: Fact<readonly SeenContainer[]>;
  readonly ports: Fact<readonly SeenPort[]>;
  /** Pids of our own runners that live → name of the rank. */
  readonly runners: ReadonlyMap<number, string>;
  /** Root reads every environment: then a bare process can be brought back. */
  readonly rootToBeHad: boolean;
  /** The GPU's memory is the host's: what a process has on it comes on top of what is resident. */
  readonly unified?: boolean;
};

/** A process that counts, with whose it is. */
export type Member = {
  readonly row: ProcessRow;
  readonly details: ProcessDetails;
  readonly whose: Attribution;
  /** Our own rank that it belongs to. */
  readonly rank: OwnRank | undefined;
};

/** `orphan`: why it is left of that rank and not the rank itself. */
export type OwnRank = { readonly name: string; readonly orphan?: string };

/** The processes that were looked at closely and are still there. */
export function membersOf(reading: ProcessReading, input: HolderInput): readonly Member[] {
  return [...reading.details].flatMap(([pid, details]) => {
    const row = reading.rows.get(pid);
    // A pid that ended between two reads has no row, or no cgroup any more: it holds nothing.
    if (row === undefined || details.cgroup.length === 0) return [];
    const whose = byContainerPid(row, attribute(details.cgroup, reading.ownCgroup), reading, input);
    return [{ row, details, whose, rank: rankOf(row, whose, reading, input) }];
  });
}

/**
 * podman without root makes no cgroup on a host with cgroup v1, so its processes stay where the login was: there the
 * container is the one whose main process is this one or an ancestor of it.
 */
function byContainerPid(
  row: ProcessRow,
  whose: Attribution,
  reading: ProcessReading,
  input: HolderInput,
): Attribution {
  if (whose.kind === 'container' || whose.kind === 'pod' || !input.containers.known) return whose;
  let at: ProcessRow | undefined = row;
  for (let depth = 0; depth < 50 && at !== undefined && at.pid > 1; depth++) {
    const { pid } = at;
    const found = input.containers.value.find((each) => each.state === 'running' && each.pid === pid);
    if (found !== undefined) return { kind: 'container', runtime: found.runtime, id: found.id };
    at = reading.rows.get(at.parent);
  }
  return whose;
}

/** One key per holder: all processes of a container, a unit, a rank, or a job are one. */
export function holderKey(member: Member, reading: ProcessReading): string {
  const { whose, rank, row } = member;
  if (rank !== undefined) return `${rank.orphan === undefined ? 'rank' : 'orphan'} ${rank.name}`;
  switch (whose.kind) {
    case 'container':
    case 'pod':
    case 'monitor':
      return `${whose.kind} ${whose.id}`;
    case 'machine':
      return `machine ${whose.machine}`;
    case 'unit':
      return isSeparate(member) ? `process ${topOf(row, reading)}` : `unit ${whose.uid ?? ''} ${whose.unit}`;
    case 'scope':
      return isBareScope(whose.scope)
        ? `process ${topOf(row, reading)}`
        : `scope ${whose.uid ?? ''} ${whose.scope}`;
    case 'session':
    case 'none':
      return `process ${topOf(row, reading)}`;
    default:
      return never(whose);
  }
}

/**
 * The rank of ours that a process belongs to: by its container, or by a runner among its ancestors or as its session.
 * What carries a runner's mark and has no runner that lives was left by one that ended.
 */
function rankOf(
  row: ProcessRow,
  whose: Attribution,
  reading: ProcessReading,
  input: HolderInput,
): OwnRank | undefined {
  if (whose.kind === 'container') {
    const container = containerOf(whose.id, input);
    if (container?.name.startsWith('firstlight-'))
      return { name: container.name.slice('firstlight-'.length) };
    return container?.labels['firstlight.rank'] === undefined ? undefined : { name: container.name };
  }
  const bySession = input.runners.get(row.session);
  if (bySession !== undefined) return { name: bySession };
  let pid = row.pid;
  for (let depth = 0; depth < 50 && pid > 1; depth++) {
    const name = input.runners.get(pid);
    if (name !== undefined) return { name };
    pid = reading.rows.get(pid)?.parent ?? 0;
  }
  const mark = reading.marks.get(row.pid);
  return mark === undefined ? undefined : { name: mark, orphan: 'its rank has ended and left it behind' };
}

/** The container of that id, where the runtime let us see it. */
export function containerOf(id: string, input: HolderInput): SeenContainer | undefined {
  return input.containers.known ? input.containers.value.find((each) => each.id === id) : undefined;
}

/** Somebody's own process in the cgroup of a unit that only hosts it: not the unit's own program. */
export function isSeparate(member: Member): boolean {
  const { whose } = member;
  return whose.kind === 'unit' && hostsOthers(whose.unit) && programProtection(member) === undefined;
}

/** Scopes that a terminal, tmux or `systemd-run --scope` made around a command: the command is what counts. */
export function isBareScope(scope: string): boolean {
  return /^(vte-spawn-|tmux-spawn-|run-)/.test(scope);
}

/** Why the program itself is never proposed to be stopped, whatever unit it runs in. */
export function programProtection(member: Member): string | undefined {
  if (member.row.pid === 1) return 'it keeps the host running';
  return protectedWhy(member.row.name) ?? protectedWhy(baseName(member.details.args[0] ?? ''));
}

/** Memory of its own from which on a process is a holder, if no GPU knows it: the probe looks at no smaller one. */
const LARGE_BYTES = 2 ** 28;

/** Whether a process holds memory worth telling: its own, or a GPU's. */
export function isHolding(row: ProcessRow, reading: ProcessReading): boolean {
  return row.residentBytes >= LARGE_BYTES || (reading.gpuBytes.known && reading.gpuBytes.value.has(row.pid));
}

/**
 * The top of a job: the farthest ancestor of the same process group and user that itself holds memory, which is
 * whom to ask to end, as it ends its children. A shell above it would end alone and leave the memory held.
 */
export function topOf(row: ProcessRow, reading: ProcessReading): number {
  let top = row;
  let at = row;
  for (let depth = 0; depth < 50; depth++) {
    const up = reading.rows.get(at.parent);
    if (up === undefined || up.pid <= 1 || row.group < 1 || up.group !== row.group || up.uid !== row.uid)
      break;
    at = up;
    if (isHolding(up, reading)) top = up;
  }
  return top.pid;
}

/** The command line as it may be shown: secrets masked, 400 characters at most. */
export function commandOf(member: Member): string {
  const text = maskSecrets(member.details.args).join(' ').trim();
  return (text || member.row.name || 'unknown').slice(0, 400);
}

/** "python3 -m sglang.launch_server", "python train.py", "VLLM::EngineCore": how a person calls a bare process. */
export function shortCommand({ row, details }: Pick<Member, 'row' | 'details'>): string {
  return shortName(details.args, row);
}

/** The same of a process of which no more is known than its arguments. */
export function shortName(args: readonly string[], row: Pick<ProcessRow, 'name' | 'pid'>): string {
  const [program = '', ...rest] = maskSecrets(args);
  const name = baseName(program) || row.name || `process ${row.pid}`;
  if (!/^(python[\d.]*|node|bash|sh|dash|perl|ruby|java|uv)$/.test(name)) return name.slice(0, 60);
  const module = rest.indexOf('-m');
  if (module !== -1 && rest[module + 1] !== undefined) return `${name} -m ${rest[module + 1]}`.slice(0, 60);
  const script = rest.find((arg) => !arg.startsWith('-'));
  if (script === undefined) return name;
  // A program that a package installed is called by its own name, whatever interprets it.
  const base = baseName(script);
  return (/\/bin\/[^/.]+$/.test(script) ? base : `${name} ${base}`).slice(0, 60);
}

function baseName(path: string): string {
  // A program that names itself freely ("nginx: worker process") is no path.
  return path.includes(' ') && !path.startsWith('/') ? path : (path.split('/').at(-1) ?? '');
}

/** The end of a switch that covers all: reaching it is our bug. */
export function never(value: never): never {
  throw new Error(`no such case: ${JSON.stringify(value)}`);
}
