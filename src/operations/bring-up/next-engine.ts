import type { BringUp, Progress } from './progress.ts';

/** Goes on with the recipe's next engine, and tells why; undefined where none is left. */
export function nextEngine({ recorder }: BringUp, progress: Progress, why: string): Progress | undefined {
  const [engine, ...left] = progress.left;
  if (engine === undefined) return undefined;
  recorder.emit({ type: 'engine-changed', from: progress.engine, to: engine, why });
  return { ...progress, engine, left, begun: false };
}
