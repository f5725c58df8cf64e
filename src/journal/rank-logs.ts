import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type StoredLine = { readonly line: number; readonly at: number; readonly text: string };

/** `<folder>/logs/<run>/a<attempt>-r<rank>.log`. Throws a plain Error for a run that is no run's id. */
export function logPath(folder: string, run: string, attempt: number, rank: number): string {
  if (!/^\d+$/.test(run)) throw new Error(`"${run}" is no run`);
  return join(folder, 'logs', run, `a${attempt}-r${rank}.log`);
}

/** Appends lines as `<ms>\t<text>\n`, in one write. A line that a killed process left unfinished is ended first. */
export function appendLines(
  path: string,
  lines: readonly { readonly at: number; readonly text: string }[],
): void {
  if (lines.length === 0) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, 'a+', 0o600);
  try {
    const text = lines.map(({ at, text }) => `${Math.round(at)}\t${printable(text)}\n`).join('');
    const bytes = Buffer.from(unfinished(file) ? `\n${text}` : text);
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
  } finally {
    closeSync(file);
  }
}

/** All lines, numbered from 1; none when there is no such log. */
export function readLines(path: string): readonly StoredLine[] {
  const lines = read(path).split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line, index) => {
    const [, at, text] = /^(\d+)\t(.*)$/.exec(line) ?? [];
    return { line: index + 1, at: Number(at ?? 0), text: text ?? line };
  });
}

/** A piece of the file from a byte on; short at its end, empty when there is no such log. */
export function readBytes(path: string, fromByte: number, mostBytes: number): Buffer {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const bytes = Buffer.alloc(Math.max(0, Math.min(mostBytes, fstatSync(file).size - fromByte)));
    let read = 0;
    while (read < bytes.length) {
      const count = readSync(file, bytes, read, bytes.length - read, fromByte + read);
      if (count === 0) break;
      read += count;
    }
    return bytes.subarray(0, read);
  } finally {
    closeSync(file);
  }
}

/** Text without terminal escape sequences and control characters; tabs stay. */
function printable(text: string): string {
  return text.replace(ESCAPES, '').replace(CONTROLS, '');
}

/** CSI, OSC and the two-character sequences of ECMA-48. */
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;
const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f-\x9f]/g;

function unfinished(file: number): boolean {
  const { size } = fstatSync(file);
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] !== 0x0a;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // A rank that never wrote a line has no log.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}
