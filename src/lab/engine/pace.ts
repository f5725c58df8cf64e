/** Waits of a stand-in, shorter by `FIRSTLIGHT_LAB_SPEED`: at 1 a model is up in about ten seconds. */
export type Pace = {
  readonly speed: number;
  wait(milliseconds: number): Promise<void>;
};

export function pace(speed: number): Pace {
  const factor = Number.isFinite(speed) && speed > 0 ? speed : 1;
  return {
    speed: factor,
    wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds / factor)),
  };
}

/** Resolves to `late` when the promise has not settled after that time. */
export async function within<T, L>(milliseconds: number, promise: Promise<T>, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late), milliseconds);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
