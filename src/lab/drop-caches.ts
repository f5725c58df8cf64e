import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Not every file system tells of changes. */
const POLL_MS = 500;

/** Calls back with what was written to a host's drop_caches; returns what ends that. */
export function watchDropCaches(root: string, written: (text: string) => void): () => void {
  const file = join(root, 'proc/sys/vm/drop_caches');
  const look = (): void => {
    if (!existsSync(file)) return;
    const text = readFileSync(file, 'utf8').trim();
    if (text === '0' || text === '') return;
    writeFileSync(file, '0\n');
    written(text);
  };
  const watcher = watch(file, look);
  const timer = setInterval(look, POLL_MS);
  timer.unref();
  return () => {
    watcher.close();
    clearInterval(timer);
  };
}
