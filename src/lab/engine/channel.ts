import type { Socket } from 'node:net';
import { type Json, parseJson } from './json.ts';

/** The other end closed its socket, or sent something that is no JSON line. */
export class ChannelClosed extends Error {}

type Waiting = { resolve(message: Json): void; reject(error: Error): void };

/**
 * JSON objects, one a line, over a socket. Either `receive()` them in order, or hand over a listener with
 * `listen()`, once. `closed` resolves when the other side is gone, however that came about.
 */
export class Channel {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #arrived: Json[] = [];
  readonly #waiting: Waiting[] = [];
  #listener: ((message: Json) => void) | undefined;
  #rest = '';
  #over = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.setNoDelay(true);
    socket.on('data', (chunk: string | Buffer) => this.#read(String(chunk)));
    this.closed = new Promise((resolve) => {
      const end = (): void => {
        this.#over = true;
        for (const waiting of this.#waiting.splice(0)) waiting.reject(new ChannelClosed('closed'));
        resolve();
      };
      socket.on('end', () => socket.destroy());
      socket.on('error', end);
      socket.on('close', end);
    });
  }

  send(message: Json): void {
    if (!this.#over) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** The next message; rejects with ChannelClosed when none will come. */
  receive(): Promise<Json> {
    const message = this.#arrived.shift();
    if (message !== undefined) return Promise.resolve(message);
    if (this.#over) return Promise.reject(new ChannelClosed('closed'));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  listen(listener: (message: Json) => void): void {
    this.#listener = listener;
    for (const message of this.#arrived.splice(0)) listener(message);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = parseJson(line);
      if (message === undefined) {
        this.#socket.destroy();
        return;
      }
      const waiting = this.#waiting.shift();
      if (this.#listener !== undefined) this.#listener(message);
      else if (waiting !== undefined) waiting.resolve(message);
      else this.#arrived.push(message);
    }
  }
}
