import { type Fact, known, type MemoryPressure, unknown } from '../../domain/facts.ts';

/** "some avg10=16.20 avg60=4.10 avg300=1.00 total=17785584" and the same of `full`, whole lines only → percent. */
export function parsePressure(text: string): Fact<MemoryPressure> {
  const some = averages(text, 'some');
  const full = averages(text, 'full');
  if (some === undefined || full === undefined) return unknown('the kernel keeps no pressure figures');
  return known({ some10: some[0], some60: some[1], full10: full[0], full60: full[1] });
}

function averages(text: string, which: 'some' | 'full'): readonly [number, number] | undefined {
  const form = /^(some|full) avg10=(\d{1,3}\.\d\d) avg60=(\d{1,3}\.\d\d) avg300=\d{1,3}\.\d\d total=\d+$/gm;
  for (const [, name, ten, sixty] of text.matchAll(form)) {
    if (name === which) return [Number(ten), Number(sixty)];
  }
  return undefined;
}
