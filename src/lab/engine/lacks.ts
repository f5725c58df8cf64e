import type { Env } from './rank.ts';

/** Whether the image that this rank runs in lacks that, or its host does (`FIRSTLIGHT_LAB_LACKS`, words with blanks). */
export function lacks(env: Env, what: string): boolean {
  return (env['FIRSTLIGHT_LAB_LACKS'] ?? '').split(' ').includes(what);
}
