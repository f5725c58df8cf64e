import { type Fact, known, unknown } from '../../domain/facts.ts';
import type { ProbeOutput } from '../../domain/probe.ts';
import { lostGpu, mebibytes, smiTrouble, splitRow } from './nvidia-smi.ts';
import { firstLine, headAndRest, printable, wholeLines, wholeNumber } from './output.ts';

export type ProcessRow = {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly uid: number;
  readonly residentBytes: number;
  readonly startTicks: string;
  /** Short name as the kernel has it. */
  readonly name: string;
};

export type ProcessDetails = {
  readonly cgroup: readonly string[];
  readonly args: readonly string[];
  readonly environmentReadable: boolean;
};

export type UnitState = {
  readonly restart: string;
  readonly mainPid: number;
  /** Sockets, timers and paths that start it. */
  readonly triggeredBy: readonly string[];
};

/** What the processes probe brought back, sorted but not yet judged. */
export type ProcessReading = {
  readonly rows: ReadonlyMap<number, ProcessRow>;
  readonly details: ReadonlyMap<number, ProcessDetails>;
  /** Arguments of processes above those. */
  readonly parents: ReadonlyMap<number, readonly string[]>;
  /** Bytes on all GPUs by pid; a value that nvidia-smi does not tell is undefined. */
  readonly gpuBytes: Fact<ReadonlyMap<number, number | undefined>>;
  /** What nvidia-smi calls the processes that it names. */
  readonly gpuNames: ReadonlyMap<number, string>;
  /** By unit name; units of this user's own manager as `user:NAME`. */
  readonly units: ReadonlyMap<string, UnitState>;
  readonly unitTrouble: string;
  readonly users: ReadonlyMap<number, string>;
  readonly uptimeSeconds: number | undefined;
  readonly ticksPerSecond: number;
  readonly ownCgroup: readonly string[];
  /** Name of the rank of ours in whose environment a process was started. */
  readonly marks: ReadonlyMap<number, string>;
};

/** Lines of the processes probe → ProcessReading; unknown when not even /proc was read. */
export function readProcesses(output: ProbeOutput | undefined): Fact<ProcessReading> {
  if (output === undefined) return unknown('this part of the look brought nothing back');
  const tagged = new Map<string, string[]>();
  for (const line of wholeLines(output).split('\n')) {
    const [tag, rest] = headAndRest(line);
    if (!/^[A-Z]$/.test(tag)) continue;
    const list = tagged.get(tag);
    if (list) list.push(rest);
    else tagged.set(tag, [rest]);
  }
  const of = (tag: string): readonly string[] => tagged.get(tag) ?? [];
  const rows = new Map(
    of('P')
      .flatMap(processRow)
      .map((row) => [row.pid, row]),
  );
  const told = (...tags: readonly string[]) => tags.some((tag) => tagged.has(tag));
  if (rows.size > 0 && !told('D', 'R', 'B', 'E')) {
    return unknown(
      output.timedOut ? 'reading the processes took too long' : 'what was read of the processes is cut off',
    );
  }
  if (rows.size === 0) {
    return unknown(
      output.timedOut
        ? 'reading the processes took too long'
        : firstLine(output.stderr) || 'no process could be seen',
    );
  }
  const [uptime, ticks] = (of('T')[0] ?? '').split(' ').map(Number);
  return known({
    rows,
    details: readDetails(of('C'), of('X')),
    parents: new Map(
      of('Y').map((line) => {
        const [pid, text] = headAndRest(line);
        return [Number(pid), argumentsOf(text)] as const;
      }),
    ),
    gpuBytes:
      of('R').length > 0 && !told('B', 'E')
        ? unknown('what nvidia-smi said of processes is cut off')
        : readApps(of('R')[0], of('A')),
    gpuNames: new Map(of('A').flatMap(appName)),
    units: new Map([...readUnits(of('U'), ''), ...readUnits(of('V'), 'user:')]),
    unitTrouble: unitTrouble(of('U'), of('V')),
    users: new Map(
      of('W').map((line) => {
        const [uid, name] = headAndRest(line);
        return [Number(uid), printable(name)];
      }),
    ),
    uptimeSeconds: uptime !== undefined && uptime > 0 && uptime < 1e10 ? uptime : undefined,
    ticksPerSecond: ticks !== undefined && ticks > 0 ? ticks : 100,
    ownCgroup: of('O'),
    marks: new Map(of('M').flatMap(markOf)),
  });
}

/** "4711 /home/…/.firstlight/<machine-id>/ranks/qwen-r1/" → the rank's name. */
function markOf(line: string): readonly (readonly [number, string])[] {
  const match = /^(\d+) \S.*\/\.firstlight\/[^/]+\/ranks\/([A-Za-z0-9][A-Za-z0-9_.-]*)\/?$/.exec(line);
  return match?.[1] === undefined || match[2] === undefined ? [] : [[Number(match[1]), match[2]]];
}

function processRow(line: string): readonly ProcessRow[] {
  const match =
    /^(\d{1,10}) (\d{1,10}) (-?\d{1,10}) (-?\d{1,10}) (\d{1,10}) (\d{1,12}) (\d{1,20}) ?(.*)$/.exec(line);
  if (!match) return [];
  const [, pid, parent, group, session, uid, kib, startTicks = '', name = ''] = match;
  return [
    {
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      session: Number(session),
      uid: Number(uid),
      residentBytes: Number(kib) * 1024,
      startTicks,
      name: printable(name),
    },
  ];
}

function readDetails(
  cgroups: readonly string[],
  commands: readonly string[],
): ReadonlyMap<number, ProcessDetails> {
  const lines = new Map<number, string[]>();
  for (const each of cgroups) {
    const [pid, rest] = headAndRest(each);
    lines.set(Number(pid), [...(lines.get(Number(pid)) ?? []), rest]);
  }
  const details = new Map<number, ProcessDetails>();
  for (const each of commands) {
    const [pid, rest] = headAndRest(each);
    const [readable, text] = headAndRest(rest);
    details.set(Number(pid), {
      cgroup: lines.get(Number(pid)) ?? [],
      args: argumentsOf(text),
      environmentReadable: readable === '1',
    });
  }
  return details;
}

/** A program that renames itself pads its line; empty arguments in between are real. */
function argumentsOf(text: string): readonly string[] {
  return text
    .replace(/[\x01\s]+$/, '')
    .split('\x01')
    .map(printable);
}

/**
 * "37388, GPU-…, 109832, VLLM::EngineCore" per line → bytes by pid. The same pid may come once as C and once as
 * G with the same memory: per GPU the larger counts; over GPUs they add up.
 */
export function readApps(
  code: string | undefined,
  lines: readonly string[],
): Fact<ReadonlyMap<number, number | undefined>> {
  const exit = wholeNumber(code);
  if (exit === undefined) return unknown('nvidia-smi gave no answer in time');
  const text = lines.join('\n');
  const perGpu = new Map<string, { readonly pid: number; readonly bytes: number | undefined }>();
  for (const line of lines) {
    const [pidText, uuid = '', memory, name] = splitRow(line, 4);
    const pid = wholeNumber(pidText);
    // A row that was cut off may end in half a number.
    if (pid === undefined || name === undefined || line.split(',').length < 4) continue;
    const key = `${pid} ${uuid}`;
    const bytes = mebibytes(memory);
    const before = perGpu.get(key)?.bytes;
    perGpu.set(key, { pid, bytes: bytes === undefined ? before : Math.max(bytes, before ?? 0) });
  }
  if (perGpu.size === 0) {
    const trouble = smiTrouble(text, exit)?.why ?? lostGpu(text);
    if (trouble !== undefined) return unknown(trouble);
    if (text.includes('[Insufficient Permissions]')) {
      return unknown('nvidia-smi may not name the processes on this GPU');
    }
    if (exit !== 0) return unknown(firstLine(text) || `nvidia-smi ended with ${exit}`);
  }
  const sums = new Map<number, number | undefined>();
  for (const { pid, bytes } of perGpu.values()) {
    const before = sums.has(pid) ? sums.get(pid) : 0;
    // Over GPUs they add up; where one does not tell, the sum is not known.
    sums.set(pid, bytes === undefined || before === undefined ? undefined : bytes + before);
  }
  return known(sums);
}

/** The name comes last and may hold anything; a path is shown by its last part. */
function appName(line: string): readonly (readonly [number, string])[] {
  const [pid, , , name = ''] = splitRow(line, 4);
  const number = wholeNumber(pid);
  const short = printable(name.startsWith('/') ? (name.split('/').at(-1) ?? '') : name).slice(0, 60);
  return number === undefined || short === '' ? [] : [[number, short]];
}

/** Blocks of "Id=…", "Restart=…", "MainPID=…", "TriggeredBy=…" → state by unit. */
function readUnits(lines: readonly string[], prefix: string): readonly (readonly [string, UnitState])[] {
  const found: [string, UnitState][] = [];
  let block = new Map<string, string>();
  const close = () => {
    const id = block.get('Id');
    const restart = block.get('Restart');
    if (id !== undefined && restart !== undefined) {
      const triggeredBy = (block.get('TriggeredBy') ?? '')
        .split(' ')
        .filter((name) => /\.(socket|timer|path)$/.test(name));
      found.push([
        `${prefix}${id}`,
        { restart, mainPid: wholeNumber(block.get('MainPID')) ?? 0, triggeredBy: triggeredBy.map(printable) },
      ]);
    }
    block = new Map();
  };
  for (const line of lines) {
    const match = /^(Id|Restart|MainPID|TriggeredBy)=(.*)$/.exec(line);
    // systemd parts units by an empty line; a key that comes again does as well.
    if (match?.[1] === undefined || block.has(match[1])) close();
    if (match?.[1] !== undefined) block.set(match[1], match[2] ?? '');
  }
  close();
  return found;
}

function unitTrouble(system: readonly string[], user: readonly string[]): string {
  const said = [...system, ...user].find((line) => line !== '' && !line.includes('='));
  return said === undefined ? 'systemd was not asked' : firstLine(said);
}
