import type { World } from '../../operations/world.ts';

/** One event as it is sent, made once for all readers. */
export type Frame = { readonly seq: number; readonly text: string; readonly last: boolean };

/** The newest events of the runs that somebody reads, looked for once for all of them. */
export type Tails = {
  /** Events after that one, a bounded number; from memory where they are new, else from the journal. */
  after(run: string, seq: number): readonly Frame[];
  /** Calls whenever there may be more; gives the way to stop it. */
  listen(run: string, wake: () => void): () => void;
  /** How many listen. */
  listeners(): number;
};

const EVERY_MILLISECONDS = 100;
const AT_ONCE = 16;
const KEPT = 512;
const BATCH_CHARACTERS = 2 ** 20;
/** Of one run's frames, so that large events do not fill the memory. */
const KEPT_CHARACTERS = 4 * 2 ** 20;

type Tail = { readonly wakes: Set<() => void>; frames: readonly Frame[]; seq: number };

/**
 * Runs of other processes are looked for ten times a second, those of this one at once. No reader has a buffer of its
 * own: it reads on from its own place when its connection takes more.
 */
export function newTails(journal: () => World['journal'], scrub: (text: string) => string): Tails {
  const tails = new Map<string, Tail>();
  let timer: NodeJS.Timeout | undefined;
  let unsubscribe: (() => void) | undefined;

  const read = (run: string, seq: number, limit: number): readonly Frame[] =>
    journal()
      .read(run, seq, limit)
      .map((event) => ({
        seq: event.seq,
        text: `id: ${event.seq}\nevent: event\ndata: ${scrub(JSON.stringify(event))}\n\n`,
        last: event.type === 'run-ended',
      }));
  const check = (run: string, tail: Tail): void => {
    for (;;) {
      const fresh = read(run, tail.seq, KEPT);
      if (fresh.length === 0) return;
      tail.frames = newest([...tail.frames, ...fresh]);
      tail.seq = fresh.at(-1)?.seq ?? tail.seq;
      for (const wake of [...tail.wakes]) wake();
      if (fresh.length < KEPT) return;
    }
  };
  const begin = (): void => {
    timer = setInterval(() => {
      for (const [run, tail] of tails) check(run, tail);
    }, EVERY_MILLISECONDS);
    timer.unref();
    unsubscribe = journal().subscribe((event) => {
      const tail = tails.get(event.run);
      if (tail !== undefined) check(event.run, tail);
    });
  };

  return {
    listeners: () => [...tails.values()].reduce((sum, tail) => sum + tail.wakes.size, 0),
    after(run, seq) {
      const frames = tails.get(run)?.frames ?? [];
      const first = frames[0];
      if (first === undefined || seq < first.seq - 1) return batch(read(run, seq, AT_ONCE));
      const from = frames.findIndex((frame) => frame.seq > seq);
      return from === -1 ? [] : batch(frames.slice(from, from + AT_ONCE));
    },
    listen(run, wake) {
      const tail = tails.get(run) ?? {
        wakes: new Set<() => void>(),
        frames: [],
        seq: journal().lastSeq(run),
      };
      tails.set(run, tail);
      tail.wakes.add(wake);
      if (timer === undefined) begin();
      return () => {
        tail.wakes.delete(wake);
        if (tail.wakes.size > 0) return;
        tails.delete(run);
        if (tails.size > 0) return;
        clearInterval(timer);
        timer = undefined;
        unsubscribe?.();
      };
    },
  };
}

/** The first frames, as many as one reader may hold back; one at least. */
function batch(frames: readonly Frame[]): readonly Frame[] {
  let room = BATCH_CHARACTERS;
  const end = frames.findIndex(({ text }, at) => {
    room -= text.length;
    return room < 0 && at > 0;
  });
  return end === -1 ? frames : frames.slice(0, end);
}

/** The last frames that may be kept; without a hole, since readers go on from the first. */
function newest(frames: readonly Frame[]): readonly Frame[] {
  let room = KEPT_CHARACTERS;
  const from = frames.findLastIndex(({ text }, at) => {
    room -= text.length;
    return room < 0 || frames.length - at > KEPT;
  });
  return frames.slice(from + 1);
}
