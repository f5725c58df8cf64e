import { tokens } from './answer.ts';
import type { Group } from './group.ts';
import { type Pace, within } from './pace.ts';

export type Piece = { readonly kind: 'reasoning' | 'content'; readonly text: string };

export type Request = {
  readonly promptTokens: number;
  readonly pieces: readonly Piece[];
  readonly maxTokens: number;
  /** Go on past the answer's end until `maxTokens`, as `ignore_eos` asks. */
  readonly endless: boolean;
};

/** What the scheduler reports of its work; the engines print it in their own form. */
export interface Reporter {
  prefill(tokens: number, running: number): void;
  /** After each decode step of any request. */
  decoded(running: number): void;
  /** A step got no answer for `stuckSeconds`; the engine gives up. */
  stuck(): void;
  readonly stuckSeconds: number;
}

/** Decode step at single stream: a 122B mixture on two Sparks does 24 to 28 tokens a second. */
const STEP_MILLISECONDS = 38;
const PREFILL_MILLISECONDS = 160;

/** The scheduler's loop as far as the API sees it: every token is a real exchange with the other ranks. */
export class Generator {
  running = 0;
  promptTokens = 0;
  completionTokens = 0;
  requests = 0;
  readonly #group: Group;
  readonly #pace: Pace;
  readonly #reporter: Reporter;

  constructor(group: Group, pace: Pace, reporter: Reporter) {
    this.#group = group;
    this.#pace = pace;
    this.#reporter = reporter;
  }

  /** Yields token by token; ends early when `aborted` says so. Hangs when another rank is gone. */
  async *generate(request: Request, aborted: () => boolean): AsyncGenerator<Piece> {
    this.running += 1;
    this.requests += 1;
    this.promptTokens += request.promptTokens;
    try {
      this.#reporter.prefill(request.promptTokens, this.running - 1);
      await this.#pace.wait(PREFILL_MILLISECONDS + request.promptTokens / 2);
      const all = [...split(request)];
      for (const [index, piece] of all.entries()) {
        if (aborted()) return;
        const begun = Date.now();
        await this.#step();
        // Four bits of wobble around the mean; the exchange's own time counts.
        const step = (STEP_MILLISECONDS + (index % 5) - 2) * (1 + 0.12 * (this.running - 1));
        await this.#pace.wait(Math.max(0, step - (Date.now() - begun) * this.#pace.speed));
        this.completionTokens += 1;
        this.#reporter.decoded(this.running);
        yield piece;
      }
    } finally {
      this.running -= 1;
    }
  }

  async #step(): Promise<void> {
    const limit = (this.#reporter.stuckSeconds * 1000) / this.#pace.speed;
    const step = this.#group.step().then(() => 'stepped' as const);
    if ((await within(limit, step, 'stuck' as const)) === 'stepped') return;
    this.#reporter.stuck();
    await new Promise(() => {});
  }
}

function* split(request: Request): globalThis.Generator<Piece, void, undefined> {
  let left = request.maxTokens;
  for (const piece of request.pieces) {
    for (const text of tokens(piece.text)) {
      if (left <= 0) return;
      left -= 1;
      yield { kind: piece.kind, text };
    }
  }
  if (!request.endless) return;
  for (let filler = 1; left > 0; left -= 1, filler += 1) yield { kind: 'content', text: ` ${filler}` };
}
