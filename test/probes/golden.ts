import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';

const FOLDER = new URL('./golden/', import.meta.url);

/** Holds a value against test/probes/golden/NAME.golden; UPDATE=1 writes it, to be read in review. */
export function expectGolden(name: string, value: unknown, writes = true): void {
  const file = new URL(`${name}.golden`, FOLDER);
  const text = `${JSON.stringify(value, null, 2)}\n`;
  if (writes && process.env['UPDATE'] === '1') {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, text);
  }
  expect(text).toBe(readFileSync(file, 'utf8'));
}

/** A sample that was recorded elsewhere: see docs of its source in test/samples. */
export function sample(path: string): string {
  return readFileSync(new URL(`../samples/${path}`, import.meta.url), 'utf8');
}
