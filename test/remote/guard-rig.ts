import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type GuardRecord, parseGuard } from '../../src/domain/guard.ts';
import { GUARD } from '../../src/remote/guard-script.ts';

const GIB = 2 ** 30;

/** A rank's folder on a host of files, its process, and its guard in one of two shells. Sizes in GiB. */
export class GuardRig {
  readonly root = mkdtempSync(join(tmpdir(), 'fl-guard-'));
  readonly home = join(this.root, 'home');
  readonly bin = join(this.root, 'bin');
  readonly folder = join(this.home, '.firstlight/m/ranks/tiny-r0');
  readonly #children: ChildProcess[] = [];
  #guard: ChildProcess | undefined;
  /** Seconds of uptime that the guard was told last, and the pipe on which it asks for more. */
  #second: number | undefined;
  #asks: number | undefined;

  constructor(availableGib: number) {
    for (const path of [this.folder, this.bin, join(this.root, 'etc'), join(this.root, 'proc')])
      mkdirSync(path, { recursive: true });
    writeFileSync(join(this.root, 'etc/machine-id'), 'm\n');
    symlinkSync('/proc/uptime', join(this.root, 'proc/uptime'));
    this.memory(availableGib);
  }

  file(path: string): string {
    return join(this.root, path);
  }

  put(path: string, text: string): void {
    mkdirSync(join(this.root, path, '..'), { recursive: true });
    writeFileSync(`${this.file(path)}.new`, text);
    renameSync(`${this.file(path)}.new`, this.file(path));
  }

  memory(availableGib: number, totalGib = 120): void {
    const kib = Math.round((availableGib * GIB) / 1024);
    this.put(
      'proc/meminfo',
      `MemTotal:       ${Math.round((totalGib * GIB) / 1024)} kB\nMemFree:        ${kib} kB\nMemAvailable:   ${kib} kB\nBuffers:        1 kB\n`,
    );
  }

  /** Second by second by the guard's own clock: each value is seen once, however late the guard or this test is. */
  async falls(gib: readonly number[]): Promise<void> {
    if (this.#second === undefined) {
      this.#second = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
      this.#pipe();
      this.#asks = await this.#asked();
    }
    for (const available of gib) {
      if (this.#asks === undefined) return;
      this.memory(available);
      this.#second += 1;
      // A pipe for each look: at the next one it has seen what was there at this one.
      this.#pipe();
      writeSync(this.#asks, `${this.#second.toFixed(2)} 0.00\n`);
      closeSync(this.#asks);
      this.#asks = await this.#asked();
    }
  }

  #pipe(): void {
    const file = this.file('proc/uptime');
    const { status } = spawnSync('mkfifo', [`${file}.new`]);
    if (status !== 0) throw new Error('no pipe');
    renameSync(`${file}.new`, file);
  }

  /** Once the guard waits for the time; undefined when it has gone. */
  async #asked(): Promise<number | undefined> {
    while (this.guarding) {
      try {
        return openSync(this.file('proc/uptime'), constants.O_WRONLY | constants.O_NONBLOCK);
      } catch (error) {
        // Nobody reads it yet.
        if (!(error instanceof Error && 'code' in error && error.code === 'ENXIO')) throw error;
      }
      await wait(20);
    }
    return undefined;
  }

  tool(name: string, text: string): void {
    writeFileSync(join(this.bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(this.bin, name), 0o755);
  }

  /** A process of this machine, leader of a session of its own, with a child; the rank's where it has its mark. */
  async process(mark: boolean): Promise<number> {
    const child = spawn('sh', ['-c', 'sleep 300 & exec sleep 301'], {
      detached: true,
      stdio: 'ignore',
      env: { PATH: '/usr/bin:/bin', ...(mark ? { FIRSTLIGHT_RANK: `${this.folder}/` } : {}) },
    });
    this.#children.push(child);
    const { pid } = child;
    if (pid === undefined) throw new Error('no process');
    this.known(pid);
    await until(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('301'));
    return pid;
  }

  /** That process is seen on the host of files too. */
  known(pid: number): void {
    symlinkSync(`/proc/${pid}`, this.file(`proc/${pid}`));
  }

  /** Says in the rank's folder which process it is, as the rank runner does. */
  engine(pid: number, ticks = startTicks(pid)): void {
    writeFileSync(join(this.folder, 'runner'), `${pid} ${ticks}\n`);
    writeFileSync(join(this.folder, 'engine'), `${pid} ${ticks}\n`);
  }

  guard(
    shell: string,
    { runtime = 'process', reserveGib = 3, set = false, path = '/usr/bin:/bin' } = {},
  ): ChildProcess {
    const file = join(this.folder, 'guard.sh');
    writeFileSync(file, GUARD);
    const [program = 'sh', ...words] = shell.split(' ');
    const kib = String(Math.round(reserveGib * 2 ** 20));
    const child = spawn(program, [...words, file, 'tiny-r0', runtime, kib, set ? 'set' : 'auto'], {
      env: { PATH: `${this.bin}:${path}`, HOME: this.home, FIRSTLIGHT_ROOT: this.root },
      stdio: ['ignore', 'ignore', 'inherit'],
      detached: true,
    });
    if (child.pid !== undefined) this.known(child.pid);
    this.#children.push(child);
    this.#guard = child;
    return child;
  }

  get record(): GuardRecord | undefined {
    const file = join(this.folder, 'guard.json');
    return existsSync(file) ? parseGuard(readFileSync(file, 'utf8')) : undefined;
  }

  get guarding(): boolean {
    return this.#guard !== undefined && this.#guard.exitCode === null && this.#guard.signalCode === null;
  }

  /** Waits until the guard has put down such a record. */
  async recorded(state: GuardRecord['state'], seconds = 25): Promise<GuardRecord> {
    await until(() => this.record?.state === state, seconds);
    const { record } = this;
    if (record === undefined) throw new Error('no record');
    return record;
  }

  close(): void {
    for (const { pid } of this.#children) if (pid !== undefined) end(pid);
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** The session of a process that leads one. */
function end(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

export function startTicks(pid: number): string {
  return fieldsOf(pid)[19] ?? '';
}

export function runs(pid: number): boolean {
  return (fieldsOf(pid)[0] ?? 'Z') !== 'Z';
}

/** Processes of a session that live. */
export function session(leader: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => runs(pid) && fieldsOf(pid)[3] === String(leader));
}

/** /proc/PID/stat behind the name: state, parent, group, session …; empty once it is gone. */
function fieldsOf(pid: number): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

export async function until(holds: () => boolean, seconds = 25): Promise<void> {
  const last = Date.now() + seconds * 1000;
  while (!holds()) {
    if (Date.now() > last) throw new Error(`not so within ${seconds} s: ${holds}`);
    await wait(50);
  }
}
