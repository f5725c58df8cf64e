import { type Fact, type Holder, known, unknown } from '../../domain/facts.ts';
import { attribute } from './cgroup.ts';
import {
  commandOf,
  containerOf,
  type HolderInput,
  holderKey,
  isHolding,
  isSeparate,
  type Member,
  membersOf,
  topOf,
} from './holder-member.ts';
import { identityOf, nameOf, ownerOf, unitState, whyProtected } from './holder-owner.ts';
import { returnsOf } from './holder-returns.ts';
import type { ProcessReading, ProcessRow } from './process-reading.ts';

/** Processes of one owner → one holder each, largest first. */
export function holdersFrom(input: HolderInput): Fact<readonly Holder[]> {
  if (!input.processes.known) return input.processes;
  const reading = input.processes.value;
  const groups = new Map<string, Member[]>();
  for (const member of membersOf(reading, input)) {
    const key = holderKey(member, reading);
    const group = groups.get(key);
    if (group) group.push(member);
    else groups.set(key, [member]);
  }
  const holders = [...groups.values()]
    .map((members) => ({ members, holder: toHolder(members, reading, input) }))
    .filter(({ members, holder }) => isWorthNaming(members, holder, reading))
    .map(({ holder }) => holder);
  holders.push(...unseen(reading));
  return known(holders.sort((a, b) => b.bytes - a.bytes || a.pid - b.pid));
}

/**
 * What nvidia-smi names and /proc does not show: a process of another container or user where each sees its own alone,
 * or one that has just ended. It holds what it holds, and nobody here could stop it.
 */
function unseen(reading: ProcessReading): readonly Holder[] {
  if (!reading.gpuBytes.known) return [];
  return [...reading.gpuBytes.value].flatMap(([pid, bytes]): readonly Holder[] => {
    if (bytes === undefined || bytes === 0 || reading.rows.has(pid)) return [];
    const why = 'this login sees nothing of that process';
    return [
      {
        identity: `gpu ${pid}`,
        name: reading.gpuNames.get(pid) ?? `process ${pid}`,
        owner: {
          kind: 'untouchable',
          what: 'a process that this login cannot see, of another container or user, or just ended',
        },
        user: 'unknown',
        pid,
        startTicks: '',
        ageSeconds: unknown(why),
        command: '',
        gpuBytes: known(bytes),
        residentBytes: unknown(why),
        bytes,
        listens: [],
      },
    ];
  });
}

/**
 * Large ones, whatever they are; small ones only where they listen and could be asked to make way: a port can be
 * in the way as memory can. The rest was looked at for its name alone: a unit's main process, or a listener.
 */
function isWorthNaming(members: readonly Member[], holder: Holder, reading: ProcessReading): boolean {
  if (members.some(({ row }) => isHolding(row, reading))) return true;
  return (
    holder.listens.length > 0 && holder.protectedWhy === undefined && holder.owner.kind !== 'untouchable'
  );
}

function toHolder(members: readonly Member[], reading: ProcessReading, input: HolderInput): Holder {
  const main = mainOf(members, reading, input);
  const gpuBytes = sumGpu(members, reading);
  const residentBytes = members.reduce((sum, { row }) => sum + row.residentBytes, 0);
  const onGpu = gpuBytes.known ? gpuBytes.value : toldGpu(members, reading);
  const owner = ownerOf(main, members, reading, input);
  const why = whyProtected(members, owner);
  const returns = why === undefined ? returnsOf(main, owner, reading) : [];
  return {
    identity: identityOf(main, owner),
    name: nameOf(main, owner),
    owner,
    user: reading.users.get(main.row.uid) ?? String(main.row.uid),
    pid: main.row.pid,
    startTicks: main.row.startTicks,
    ageSeconds: ageOf(main.row, reading),
    command: commandOf(main),
    gpuBytes,
    residentBytes: known(residentBytes),
    bytes: input.unified === true ? onGpu + residentBytes : Math.max(onGpu, residentBytes),
    listens: listensOf(members, input, reading),
    ...(why === undefined ? {} : { protectedWhy: why }),
    ...(returns.length === 0 ? {} : { returns }),
  };
}

/** Whom a signal would go to: the container's or unit's main process, the top of a job, else the largest. */
function mainOf(members: readonly Member[], reading: ProcessReading, input: HolderInput): Member {
  const wanted = (member: Member): boolean => {
    const { whose, row } = member;
    if (whose.kind === 'container') return containerOf(whose.id, input)?.pid === row.pid;
    const main =
      whose.kind === 'unit' && !isSeparate(member) ? unitState(whose, reading)?.mainPid : undefined;
    return main ? main === row.pid : topOf(row, reading) === row.pid;
  };
  const size = (member: Member) =>
    member.row.residentBytes + ((reading.gpuBytes.known && reading.gpuBytes.value.get(member.row.pid)) || 0);
  const [main] = [...members].sort((a, b) => Number(wanted(b)) - Number(wanted(a)) || size(b) - size(a));
  if (main === undefined) throw new Error('a holder without a process');
  return main;
}

function sumGpu(members: readonly Member[], reading: ProcessReading): Fact<number> {
  if (!reading.gpuBytes.known) return reading.gpuBytes;
  const apps = reading.gpuBytes.value;
  const own = members.flatMap(({ row }) => (apps.has(row.pid) ? [apps.get(row.pid)] : []));
  if (own.includes(undefined))
    return unknown(
      own.length === 1
        ? 'nvidia-smi names the process and not its memory'
        : 'nvidia-smi does not tell the memory of each of its processes',
    );
  return known(toldGpu(members, reading));
}

/** What nvidia-smi tells of them, which is the least that they hold. */
function toldGpu(members: readonly Member[], { gpuBytes }: ProcessReading): number {
  if (!gpuBytes.known) return 0;
  return members.reduce((sum, { row }) => sum + (gpuBytes.value.get(row.pid) ?? 0), 0);
}

function ageOf(row: ProcessRow, reading: ProcessReading): Fact<number> {
  if (reading.uptimeSeconds === undefined) return unknown('the host tells no uptime');
  const age = reading.uptimeSeconds - Number(row.startTicks) / reading.ticksPerSecond;
  return age < -1
    ? unknown('it started later than the host’s clock says')
    : known(Math.max(0, Math.round(age)));
}

function listensOf(
  members: readonly Member[],
  input: HolderInput,
  reading: ProcessReading,
): readonly number[] {
  const pids = new Set(members.map(({ row }) => row.pid));
  const found = new Set<number>();
  for (const { whose } of members) {
    if (whose.kind === 'container')
      for (const port of containerOf(whose.id, input)?.published ?? []) found.add(port);
  }
  for (const port of input.ports.known ? input.ports.value : []) {
    const ours = port.pid.known
      ? pids.has(port.pid.value)
      : port.cgroup !== undefined && members.some((member) => sameCgroup(member, port.cgroup, reading));
    if (ours) found.add(port.port);
  }
  return [...found].sort((a, b) => a - b);
}

/** Whether a socket's cgroup is the container or unit that a process is in; logins share theirs with strangers. */
function sameCgroup(member: Member, cgroup: string | undefined, reading: ProcessReading): boolean {
  const { whose } = member;
  if (whose.kind !== 'container' && whose.kind !== 'unit') return false;
  if (isSeparate(member)) return false;
  const socket = attribute([`0::${cgroup}`], reading.ownCgroup);
  if (whose.kind === 'container') return socket.kind === 'container' && socket.id === whose.id;
  return socket.kind === 'unit' && socket.unit === whose.unit && socket.uid === whose.uid;
}
