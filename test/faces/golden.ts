import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

// Clocks are in the viewer's zone; the goldens are read in UTC.
process.env['TZ'] = 'UTC';

const FOLDER = join(import.meta.dirname, 'golden');

/** Holds a text against its golden file; UPDATE=1 writes it anew. */
export function golden(name: string, text: string): void {
  const file = join(FOLDER, `${name}.txt`);
  if (process.env['UPDATE'] === '1') {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, text);
    return;
  }
  expect(existsSync(file), `${file} is missing: run with UPDATE=1 and read it`).toBe(true);
  expect(text).toBe(readFileSync(file, 'utf8'));
}
