import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { Connection } from './connection.ts';
import { endChild } from './ssh-child.ts';

/** A TCP connection from that host, as a stream; what goes wrong comes as the stream's error. */
export function dialThrough(connection: Connection, address: string, port: number): Duplex {
  return new Dialled(connection, address, port);
}

/** Stdin and stdout of `ssh -W`, once the connection is open. */
class Dialled extends Duplex {
  #child: ChildProcessWithoutNullStreams | undefined;
  readonly #gone = new AbortController();
  #said = '';

  constructor(connection: Connection, address: string, port: number) {
    super({ allowHalfOpen: true });
    const host = address.includes(':') ? `[${address}]` : address;
    connection.connect(this.#gone.signal).then(
      (failure) => {
        if (this.destroyed) return;
        if (failure !== undefined) this.destroy(new Error(failure.sentence));
        else this.#start(connection, `${host}:${port}`);
      },
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  }

  #start(connection: Connection, target: string): void {
    const [program = '', ...args] = connection.argv(['-W', target]);
    const child = spawn(program, args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString()).slice(-2000);
    });
    child.stdin.on('error', () => undefined); // the other end closed: its exit says why
    child.on('error', (error) => this.destroy(error));
    child.on('close', (code) => {
      if (code === 0 || this.destroyed) this.push(null);
      else
        this.destroy(
          new Error(`no connection to ${target} from ${connection.link.name}: ${whyNot(this.#said)}`),
        );
    });
    this.emit('dialled');
  }

  override _read(): void {
    this.#child?.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#ready((child) => {
      // Who went before all was written may have answered all the same: that is read to its end, and the exit says why.
      child.stdin.write(chunk, () => done());
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#ready((child) => {
      child.stdin.end(() => done());
    });
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#gone.abort(error ?? new Error('closed'));
    if (this.#child !== undefined) endChild(this.#child);
    done(error);
  }

  #ready(work: (child: ChildProcessWithoutNullStreams) => void): void {
    if (this.#child !== undefined) work(this.#child);
    else
      this.once('dialled', () => {
        if (this.#child !== undefined) work(this.#child);
      });
  }
}

/** The master tells a refusal to its own log alone; its client makes one sentence of all that can go wrong. */
function whyNot(said: string): string {
  return /Stdio forwarding request failed/.test(said) ? 'nothing answers there' : said.trim();
}
