import type { Recorder } from './recorder.ts';

/** What the nodes tell of the fabric links of an attempt's ranks, second by second. */
export class FabricLinks {
  readonly #recorder: Recorder;
  readonly #downSince = new Map<string, number>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** Told whenever it changed, and once at the start of each connection. */
  hear(node: string, link: string, up: boolean, now: number): void {
    const key = `${node} (${link})`;
    if (up !== this.#downSince.has(key)) return;
    if (up) this.#downSince.delete(key);
    else this.#downSince.set(key, now);
    const text = up
      ? `The fabric link of ${key} is up again.`
      : `The fabric link of ${key} is down. Ranks wait for each other over it.`;
    this.#recorder.emit({ type: 'note', level: up ? 'info' : 'warning', node, text });
  }

  /** Since when one of them has been down without a break. */
  get downSince(): number | undefined {
    return this.#downSince.size === 0 ? undefined : Math.min(...this.#downSince.values());
  }
}
