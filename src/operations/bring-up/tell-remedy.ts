import type { Recorder } from '../recorder.ts';
import type { Pending } from './progress.ts';

/** Emits what became of a remedy, and why that is so. */
export function tellRemedy(
  recorder: Recorder,
  type: 'remedy-applied' | 'remedy-proved' | 'remedy-failed',
  { attempt, treatment }: Pending,
  why: string,
): void {
  const { remedy, cause, node, title, edits } = treatment;
  recorder.emit({ type, attempt, cause, node, remedy, title, edits, why });
}
