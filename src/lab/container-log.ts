export type ContainerLine = {
  readonly at: string;
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
};

/** Lines kept per container; older ones are forgotten. */
const KEPT = 50_000;

/** A container's output as docker keeps it: by line, each with the time it came and its stream. */
export class ContainerLog {
  #lines: ContainerLine[] = [];
  readonly #rest = { stdout: '', stderr: '' };
  readonly #followers = new Set<(line: ContainerLine) => void>();
  #nanoseconds = 0;

  get lines(): readonly ContainerLine[] {
    return this.#lines;
  }

  write(stream: 'stdout' | 'stderr', text: string): void {
    const parts = (this.#rest[stream] + text).split('\n');
    this.#rest[stream] = parts.pop() ?? '';
    for (const part of parts) this.#add(stream, part);
  }

  /** The process is gone: what it wrote without a line's end is a line too. */
  flush(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = this.#rest[stream];
      this.#rest[stream] = '';
      if (rest !== '') this.#add(stream, rest);
    }
  }

  follow(listener: (line: ContainerLine) => void): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  #add(stream: 'stdout' | 'stderr', text: string): void {
    this.#nanoseconds = (this.#nanoseconds + 1317) % 1_000_000;
    const at = new Date().toISOString().replace('Z', `${String(this.#nanoseconds).padStart(6, '0')}Z`);
    const line = { at, stream, text };
    this.#lines.push(line);
    if (this.#lines.length > KEPT) this.#lines = this.#lines.slice(-KEPT / 2);
    for (const follower of this.#followers) follower(line);
  }
}
