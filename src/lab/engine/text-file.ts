import { readdirSync, readFileSync } from 'node:fs';

/** The text of a small file, empty where it is not there, or gone meanwhile. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Names in a folder, sorted; none where it is not there. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}
