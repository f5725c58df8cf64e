import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { literalSet } from '../../src/diagnosis/literal-set.ts';

describe('a set of literals', () => {
  it('finds literals that overlap and stand within each other', () => {
    const set = literalSet(['he', 'she', 'his', 'hers']);
    expect([...set.in('ushers')].sort()).toEqual([0, 1, 3]);
    expect(set.any('ahi')).toBe(false);
  });

  it('agrees with a plain search, whatever the text', () => {
    const word = fc.stringMatching(/^[ab c]{1,4}$/);
    fc.assert(
      fc.property(
        fc.uniqueArray(word, { minLength: 1, maxLength: 8 }),
        fc.stringMatching(/^[ab cé]{0,30}$/),
        (words, text) => {
          const set = literalSet(words);
          const expected = words.flatMap((one, index) => (text.includes(one) ? [index] : []));
          expect([...set.in(text)].sort((a, b) => a - b)).toEqual(expected);
          expect(set.any(text)).toBe(expected.length > 0);
        },
      ),
    );
  });

  it('refuses an empty literal', () => {
    expect(() => literalSet([''])).toThrow('no such literal');
  });
});
