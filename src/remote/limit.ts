/** At most so many at once; the rest wait in line. What work says that it keeps holds its place when it is over, too. */
export type Limit = <T>(signal: AbortSignal, work: (keep: Keep) => Promise<T>) => Promise<T>;
export type Keep = (until: Promise<void>) => void;

/** Waiting ends, and rejects with the signal's reason, when the signal aborts; work that runs has the same signal in its own hands. */
export function limitTo(most: number): Limit {
  let running = 0;
  const waiting: (() => void)[] = [];
  const next = (): void => {
    const go = waiting.shift();
    // The place is handed over, so that a newcomer cannot slip in between.
    if (go === undefined) running -= 1;
    else go();
  };
  return async (signal, work) => {
    signal.throwIfAborted();
    if (running >= most) await turn(signal);
    else running += 1;
    const kept: Promise<void>[] = [];
    try {
      signal.throwIfAborted();
      return await work((until) => kept.push(until));
    } finally {
      if (kept.length === 0) next();
      else void Promise.allSettled(kept).then(next);
    }
  };

  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        waiting.splice(waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      waiting.push(go);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}

/** Several callers share one piece of work; it is aborted only when all of them have gone. */
export class Shared<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  #running:
    | { readonly promise: Promise<T>; readonly controller: AbortController; waiting: number }
    | undefined;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#work = work;
  }

  async join(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#running === undefined) {
      const controller = new AbortController();
      const promise = this.#work(controller.signal);
      const mine = { promise, controller, waiting: 0 };
      this.#running = mine;
      const clear = (): void => {
        if (this.#running === mine) this.#running = undefined;
      };
      promise.then(clear, clear);
    }
    const running = this.#running;
    running.waiting += 1;
    try {
      return await race(running.promise, signal);
    } finally {
      running.waiting -= 1;
      if (running.waiting === 0 && this.#running === running && signal.aborted) {
        this.#running = undefined;
        running.controller.abort(signal.reason);
      }
    }
  }
}

function race<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** What the first of them came to that came to anything; undefined when none did. Rejects as the first that fails. */
export function firstKnown<T>(works: readonly Promise<T | undefined>[]): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    for (const work of works) work.then((found) => found !== undefined && resolve(found), reject);
    Promise.all(works).then(() => resolve(undefined), reject);
  });
}

/** Resolves after the time, or rejects with the signal's reason. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    // A signal that has aborted tells nobody any more.
    signal.throwIfAborted();
    const leave = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, milliseconds);
    signal.addEventListener('abort', leave, { once: true });
  });
}
