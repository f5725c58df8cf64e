import { writeSync } from 'node:fs';

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Writes all of it before returning, so that a process which then ends by SIGKILL has said it. */
export function write(file: 1 | 2, text: string): void {
  let rest = Buffer.from(text, 'utf8');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(file, rest));
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code !== 'EAGAIN') return; // The reader went away: Python's logging goes on, and so does this.
      Atomics.wait(pause, 0, 0, 5);
    }
  }
}

const two = (value: number): string => String(value).padStart(2, '0');

/** SGLang: `[2026-08-21 10:00:00 TP0] message`, all on stderr, no level. */
export class SglangLog {
  readonly #prefix: string;
  constructor(prefix: string) {
    this.#prefix = prefix;
  }
  /** A line of the rank's scheduler. */
  rank(message: string): void {
    write(2, `[${stamp()}${this.#prefix}] ${message}\n`);
  }
  /** A line of the main process, which has no prefix. */
  main(message: string): void {
    write(2, `[${stamp()}] ${message}\n`);
  }
  raw(text: string): void {
    write(2, text);
  }
}

function stamp(): string {
  const now = new Date();
  const day = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  return `${day} ${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
}

export type VllmLevel = 'INFO' | 'WARNING' | 'ERROR';

/** vLLM: `(Worker_TP0 pid=12) INFO 08-17 10:00:00 [file.py:1] message` on stdout, every line prefixed. */
export class VllmLog {
  line(who: string, level: VllmLevel, place: string, message: string): void {
    const now = new Date();
    const day = `${two(now.getMonth() + 1)}-${two(now.getDate())}`;
    const time = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
    for (const part of message.split('\n')) write(1, `${who}${level} ${day} ${time} [${place}] ${part}\n`);
  }
  /** What a child prints outside logging: prefixed, no level. */
  plain(who: string, text: string): void {
    for (const part of text.split('\n')) write(2, `${who}${part}\n`);
  }
  /** What comes from C++ and knows of no prefix. */
  raw(text: string): void {
    write(2, text);
  }
}

/** `[W1129 13:51:36.567058351 socket.cpp:207] …`: torch's C++ logging. */
export function torchStamp(level: 'W' | 'E', place: string): string {
  const now = new Date();
  const nanos = String(now.getMilliseconds() * 1_000_000 + (process.hrtime()[1] % 1_000_000)).padStart(
    9,
    '0',
  );
  const time = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}.${nanos}`;
  return `[${level}${two(now.getMonth() + 1)}${two(now.getDate())} ${time} ${place}]`;
}

/** Seconds → `00:13`, as tqdm shows them. */
function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return `${two(Math.floor(whole / 60))}:${two(whole % 60)}`;
}

/** `Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.0it/s]` */
export function shardBar(done: number, all: number, seconds: number): string {
  const percent = String(Math.round((done / all) * 100)).padStart(3);
  const left = done === 0 ? '?' : clock((seconds / done) * (all - done));
  return `Loading safetensors checkpoint shards: ${percent}% Completed | ${done}/${all} [${clock(seconds)}<${left}, ${rate(done, seconds)}]`;
}

/** `Capturing …:  40%|####      | 14/35 [00:03<00:05,  4.10it/s]` */
export function bar(title: string, done: number, all: number, seconds: number): string {
  const percent = String(Math.round((done / all) * 100)).padStart(3);
  const filled = Math.round((done / all) * 10);
  const drawn = '█'.repeat(filled).padEnd(10);
  const left = done === 0 ? '?' : clock((seconds / done) * (all - done));
  return `${title}: ${percent}%|${drawn}| ${done}/${all} [${clock(seconds)}<${left}, ${rate(done, seconds)}]`;
}

function rate(done: number, seconds: number): string {
  if (done === 0) return '?it/s';
  const each = seconds / done;
  return each > 1
    ? `${each.toFixed(2).padStart(5)}s/it`
    : `${(done / Math.max(seconds, 1e-3)).toFixed(2).padStart(5)}it/s`;
}
