import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeProcessFiles, writeProcessFiles } from './host-files.ts';
import type { Ledger } from './ledger.ts';
import { allPids, environmentOf, parentOf, runs, signal, startTicks } from './real-process.ts';
import { GIB } from './story.ts';

/** What a process is to the lab: who runs it, where it belongs, and how much it wants. */
export type Program = {
  readonly argv: readonly string[];
  readonly comm: string;
  readonly user: string;
  readonly uid: number;
  readonly cgroup: string;
  /** Real path. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly gpuBytes: number;
  readonly residentBytes: number;
  /** Takes what there is up to `gpuBytes`, and leaves that much. */
  readonly leavesBytes: number | undefined;
  readonly stubborn: boolean;
};

export type LabProcess = Program & {
  readonly pid: number;
  readonly ppid: number;
  readonly startTicks: string;
  readonly startedAt: number;
};

type Entry = { process: LabProcess; over: (signal: NodeJS.Signals | null, code: number | null) => void };

const POLL_MS = 200;

/**
 * The processes of one lab host that its world knows: real processes of this machine, which really end when they
 * are really killed. Their memory is the ledger's; when one is gone, its memory is on its way back.
 */
export class Processes {
  readonly #root: string;
  readonly #ledger: Ledger;
  readonly #alive: string;
  readonly #uid: number;
  readonly #entries = new Map<number, Entry>();
  readonly #gpuBytes = new Map<number, number>();
  readonly #children = new Set<ChildProcess>();
  readonly #seen = new Set<number>();
  readonly #candidates = new Set<number>();
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  /** `alive`: a FIFO that ends with the daemon. `uid`: whose sessions run here. */
  constructor(root: string, ledger: Ledger, alive: string, uid: number) {
    this.#root = root;
    this.#uid = uid;
    this.#ledger = ledger;
    this.#alive = alive;
    this.#timer = setInterval(() => this.#poll(), POLL_MS);
    this.#timer.unref();
  }

  get list(): readonly LabProcess[] {
    return [...this.#entries.values()].map(({ process }) => process);
  }

  find(pid: number): LabProcess | undefined {
    return this.#entries.get(pid)?.process;
  }

  gpuBytesOf(pid: number): number {
    return this.#gpuBytes.get(pid) ?? 0;
  }

  /**
   * Starts a program that does nothing but be there: a shell that waits on a pipe which ends with the daemon. It
   * takes its memory at once where it is free, else as soon as it is. `over` is called once, when it has ended.
   */
  start(program: Program, over: Entry['over']): LabProcess {
    const trap = program.stubborn ? "trap '' TERM; " : '';
    const child = spawn('/bin/sh', ['-c', `${trap}exec <"$0"; while read -r _; do :; done`, this.#alive], {
      argv0: program.argv[0] ?? 'sh',
      cwd: program.cwd,
      env: program.env,
      detached: true,
      stdio: 'ignore',
    });
    const { pid } = child;
    const ticks = pid === undefined ? undefined : startTicks(pid);
    if (pid === undefined || ticks === undefined) throw new Error('a lab process did not start');
    this.#children.add(child);
    child.on('exit', (code, bySignal) => {
      this.#children.delete(child);
      this.gone(pid, bySignal, code);
    });
    const process: LabProcess = { ...program, pid, ppid: 1, startTicks: ticks, startedAt: Date.now() };
    this.#enter(process, over);
    this.#take(process);
    return process;
  }

  /** Takes a process under its wings that somebody else started: an engine, or a program started by hand. */
  adopt(pid: number, program: Program, over: Entry['over']): LabProcess | undefined {
    const ticks = startTicks(pid);
    if (ticks === undefined) return undefined;
    const process: LabProcess = {
      ...program,
      pid,
      ppid: parentOf(pid) ?? 1,
      startTicks: ticks,
      startedAt: Date.now(),
    };
    this.#enter(process, over);
    this.#take(process);
    return process;
  }

  /** That process now holds so many bytes in all, or cannot. */
  hold(pid: number, bytes: number, gpu: boolean): boolean {
    return this.#hold(pid, bytes, gpu ? bytes : undefined, gpu);
  }

  /** What all processes hold that is resident, and not the GPU's. */
  get residentBytes(): number {
    let sum = 0;
    for (const pid of this.#entries.keys())
      sum += Math.max(0, this.#ledger.heldBy(owner(pid)) - this.gpuBytesOf(pid));
    return sum;
  }

  /** The process is gone, or as good as gone: its memory starts to come back. */
  gone(pid: number, bySignal: NodeJS.Signals | null, code: number | null): void {
    const entry = this.#entries.get(pid);
    if (entry === undefined) return;
    this.#entries.delete(pid);
    this.#gpuBytes.delete(pid);
    removeProcessFiles(this.#root, pid);
    this.#ledger.release(owner(pid));
    entry.over(bySignal, code);
  }

  /** Ends everything that the lab started or knows here. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const { process } of this.#entries.values()) signalTree(process.pid, 'SIGKILL');
  }

  #enter(process: LabProcess, over: Entry['over']): void {
    removeProcessFiles(this.#root, process.pid);
    writeProcessFiles(this.#root, process);
    this.#entries.set(process.pid, { process, over });
  }

  #take(process: LabProcess): void {
    if (this.#closed || this.#entries.get(process.pid)?.process !== process) return;
    const { gpuBytes, residentBytes, leavesBytes } = process;
    if (gpuBytes + residentBytes === 0) return;
    const room = this.#ledger.snapshot.availableBytes - 0.126 * GIB;
    const wanted =
      leavesBytes === undefined
        ? gpuBytes + residentBytes
        : Math.min(gpuBytes + residentBytes, room - leavesBytes);
    if (wanted > 0 && this.#hold(process.pid, wanted, wanted - residentBytes, false)) return;
    setTimeout(() => this.#take(process), POLL_MS).unref();
  }

  /** How much of it is the GPU's stands before the ledger tells of the change. */
  #hold(pid: number, bytes: number, gpuBytes: number | undefined, driver: boolean): boolean {
    const before = this.#gpuBytes.get(pid);
    if (gpuBytes !== undefined) this.#gpuBytes.set(pid, gpuBytes);
    if (this.#ledger.hold(owner(pid), bytes, driver)) return true;
    if (before === undefined) this.#gpuBytes.delete(pid);
    else this.#gpuBytes.set(pid, before);
    return false;
  }

  #poll(): void {
    for (const { process } of this.#entries.values()) {
      if (!runs(process.pid, process.startTicks)) this.gone(process.pid, null, null);
    }
    for (const name of readdirSync(join(this.#root, 'proc'))) {
      const pid = Number(name);
      if (!Number.isInteger(pid) || this.#entries.has(pid)) continue;
      const ticks = startTicks(pid);
      if (ticks === undefined || !runs(pid, ticks)) removeProcessFiles(this.#root, pid);
    }
    this.#mirrorSessions();
  }

  /** What runs in ssh sessions is seen in the host's own /proc too, once it lives longer than a moment. */
  #mirrorSessions(): void {
    const now = new Set(allPids());
    for (const pid of this.#seen) if (!now.has(pid)) this.#seen.delete(pid);
    for (const pid of this.#candidates) {
      this.#candidates.delete(pid);
      const ticks = startTicks(pid);
      if (ticks === undefined || this.#entries.has(pid)) continue;
      if (environmentOf(pid)?.['FIRSTLIGHT_ROOT'] !== this.#root) continue;
      try {
        this.#mirror(pid);
      } catch {
        // The setsid stand-in did the same at the same moment; the folder is there.
      }
    }
    for (const pid of now) {
      if (this.#seen.has(pid)) continue;
      this.#seen.add(pid);
      this.#candidates.add(pid);
    }
  }

  #mirror(pid: number): void {
    const folder = join(this.#root, 'proc', String(pid));
    mkdirSync(folder, { recursive: true });
    const there = readdirSync(folder);
    for (const name of ['stat', 'cmdline', 'comm', 'environ', 'cwd', 'statm']) {
      if (!there.includes(name)) symlinkSync(`/proc/${pid}/${name}`, join(folder, name));
    }
    rmSync(join(folder, 'status'), { force: true });
    writeFileSync(join(folder, 'status'), statusOf(pid, this.#uid));
    writeFileSync(join(folder, 'cgroup'), '0::/user.slice/user-1000.slice/session-1.scope\n');
  }
}

function statusOf(pid: number, uid: number): string {
  const ids = [uid, uid, uid, uid].join('\t');
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8').replace(/^(Uid|Gid):.*$/gm, `$1:\t${ids}`);
  } catch {
    // It ended meanwhile; the next poll removes its folder.
    return '';
  }
}

/** A process and its group, where it leads one. */
export function signalTree(pid: number, name: NodeJS.Signals): void {
  signal(pid, name, true);
  signal(pid, name);
}

function owner(pid: number): string {
  return `pid:${pid}`;
}
