/** What ends a frame: the command's exit code, or why sudo was refused. */
export type FrameEnd =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'refused'; readonly why: 'missing' | 'password' | 'wrong' };

/** Characters kept of what comes from outside: a login shell may print without end. */
const MOST_NOISE = 8192;
/** Bytes of a line after which it is handed on without its end. */
const LONGEST_LINE = 2 ** 20;

/**
 * Takes what a command wrote out of what its login shell wrote around it. Bytes between the marker's line and
 * `<marker>:<end>` are handed on as they come; everything outside is kept in `noise`.
 */
export class Frame {
  readonly #marker: Buffer;
  readonly #take: (bytes: Buffer) => void;
  #pending = Buffer.alloc(0);
  #state: 'before' | 'inside' | 'after' = 'before';
  #noise = '';
  end: FrameEnd | undefined;

  constructor(marker: string, take: (bytes: Buffer) => void) {
    this.#marker = Buffer.from(marker);
    this.#take = take;
  }

  get begun(): boolean {
    return this.#state !== 'before';
  }

  /** What came from outside the frame: banners, rc files, ssh's own words. */
  get noise(): string {
    return this.#state === 'before' ? this.#noise + this.#pending.toString() : this.#noise;
  }

  feed(chunk: Buffer): void {
    let bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    this.#pending = Buffer.alloc(0);
    if (this.#state === 'before') {
      const begin = Buffer.concat([this.#marker, Buffer.from('\n')]);
      const at = bytes.indexOf(begin);
      if (at === -1) {
        this.#hear(this.#keepTail(bytes, begin.length));
        return;
      }
      this.#hear(bytes.subarray(0, at));
      bytes = bytes.subarray(at + begin.length);
      this.#state = 'inside';
    }
    if (this.#state === 'inside') {
      const at = bytes.indexOf(this.#marker);
      if (at === -1) {
        const whole = this.#keepTail(bytes, this.#marker.length);
        if (whole.length > 0) this.#take(whole);
        return;
      }
      const line = bytes.indexOf(10, at);
      if (at > 0) this.#take(bytes.subarray(0, at));
      if (line === -1) {
        this.#pending = Buffer.from(bytes.subarray(at));
        return;
      }
      this.end = readEnd(bytes.subarray(at + this.#marker.length, line).toString());
      this.#state = 'after';
      bytes = bytes.subarray(line + 1);
    }
    this.#hear(bytes);
  }

  #hear(bytes: Buffer): void {
    this.#noise = (this.#noise + bytes.toString()).slice(-MOST_NOISE);
  }

  /** Holds back what may be the beginning of a marker, and returns the rest. */
  #keepTail(bytes: Buffer, length: number): Buffer {
    const first = this.#marker[0] ?? 0;
    let at = bytes.indexOf(first, Math.max(0, bytes.length - length));
    while (at !== -1) {
      if (this.#marker.subarray(0, bytes.length - at).equals(bytes.subarray(at, at + this.#marker.length)))
        break;
      at = bytes.indexOf(first, at + 1);
    }
    if (at === -1) return bytes;
    this.#pending = Buffer.from(bytes.subarray(at));
    return bytes.subarray(0, at);
  }
}

function readEnd(text: string): FrameEnd | undefined {
  const why = /^:-(missing|password|wrong)$/.exec(text)?.[1];
  if (why === 'missing' || why === 'password' || why === 'wrong') return { kind: 'refused', why };
  const code = /^:(\d+)$/.exec(text)?.[1];
  return code === undefined ? undefined : { kind: 'code', code: Number(code) };
}

/** Splits what comes in chunks into lines; `rest` gives the unfinished one. */
export class Lines {
  readonly #line: (line: string) => void;
  #carry = Buffer.alloc(0);

  constructor(line: (line: string) => void) {
    this.#line = line;
  }

  feed(chunk: Buffer): void {
    let bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk]);
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10)) {
      this.#line(bytes.subarray(0, at).toString());
      bytes = bytes.subarray(at + 1);
    }
    this.#carry = Buffer.from(bytes);
    if (this.#carry.length > LONGEST_LINE) this.finish();
  }

  finish(): void {
    if (this.#carry.length > 0) this.#line(this.#carry.toString());
    this.#carry = Buffer.alloc(0);
  }
}
