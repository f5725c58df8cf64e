import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { expect } from 'vitest';

const WAITS = 15_000;

/** util-linux's `script` opens the pseudo-terminal; without it nothing here can be tried. */
export const hasPty = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux');

/** program.ts as one file that Node runs. */
export async function compileProgram(folder: string): Promise<string> {
  const built = await rolldown({ input: join(import.meta.dirname, 'program.ts'), platform: 'node' });
  const file = join(folder, 'program.mjs');
  await built.write({ file, format: 'esm', codeSplitting: false });
  return file;
}

/** A shell on a pseudo-terminal of 24 rows and 80 columns. */
export class Pty {
  readonly folder = mkdtempSync(join(tmpdir(), 'firstlight-pty-'));
  readonly #child: ChildProcessWithoutNullStreams;
  #text = '';
  #seen = 0;

  constructor(shell: string, env: Readonly<Record<string, string>> = {}) {
    const { PATH = '', HOME = '' } = process.env;
    this.#child = spawn('script', ['-qfec', `stty rows 24 cols 80; ${shell}`, '/dev/null'], {
      env: {
        PATH,
        HOME,
        LANG: 'C.UTF-8',
        TERM: 'xterm',
        NO_COLOR: '1',
        PS1: '$ ',
        PTY_FOLDER: this.folder,
        ...env,
      },
    });
    this.#child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#text += chunk;
    });
  }

  /** Everything that the terminal was sent. */
  get text(): string {
    return this.#text;
  }

  /** What it was sent since the last keys. */
  get since(): string {
    return this.#text.slice(this.#seen);
  }

  type(keys: string): void {
    this.#seen = this.#text.length;
    this.#child.stdin.write(keys);
  }

  /** Waits for something that came since the last keys. */
  async shows(wanted: RegExp): Promise<void> {
    await this.waits(() => wanted.test(this.since), String(wanted));
  }

  async waits(holds: () => boolean, what: string): Promise<void> {
    const until = Date.now() + WAITS;
    while (!holds()) {
      if (Date.now() > until)
        expect.fail(`${what} did not come; the terminal shows ${JSON.stringify(this.#text.slice(-3000))}`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  has(file: string): boolean {
    return existsSync(join(this.folder, file));
  }

  read(file: string): string {
    return readFileSync(join(this.folder, file), 'utf8');
  }

  put(file: string): void {
    writeFileSync(join(this.folder, file), '');
  }

  /** Closes the terminal as a window does: the other side of it is gone. */
  closeTerminal(): void {
    this.#child.kill('SIGKILL');
  }

  close(): void {
    this.#child.kill('SIGKILL');
    const pid = this.has('pid') ? Number(this.read('pid')) : 0;
    if (pid > 0 && alive(pid)) process.kill(pid, 'SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Whether a process with this number is there. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // it has ended
  }
}
