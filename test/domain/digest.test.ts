import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical, digestOf, sha256 } from '../../src/domain/digest.ts';

const reference = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

test('SHA-256 agrees with node, at every block border and for any text', () => {
  for (let length = 0; length < 200; length++) {
    const text = 'é'.repeat(length % 7) + 'a'.repeat(length);
    expect(sha256(text)).toBe(reference(text));
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => sha256(text) === reference(text)),
    { numRuns: 200 },
  );
});

test('a digest does not depend on the order of keys, and does on the order of lists', () => {
  expect(digestOf({ a: 1, b: { c: [1, 2], d: null } })).toBe(digestOf({ b: { d: null, c: [1, 2] }, a: 1 }));
  expect(digestOf([1, 2])).not.toBe(digestOf([2, 1]));
  expect(digestOf({ a: 1, b: undefined })).toBe(digestOf({ a: 1 }));
  expect(digestOf({ a: 1 })).toMatch(/^[0-9a-f]{16}$/);
});

test('canonical JSON is JSON of the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonical(value);
      expect(canonical(JSON.parse(text))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 200 },
  );
});

test('what JSON cannot hold has no digest', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, () => 1, 1n])
    expect(() => digestOf({ a: [{ b: value }] })).toThrow('no JSON form');
});
