import { describe, expect, it } from 'vitest';
import { apart, colourOf, contrast, readStyles, tokens, VISIONS } from './colours.ts';

/** Every rule of the other style sheets: its selector and what it says. */
const rules = ['page', 'parts'].flatMap((name) =>
  [...readStyles(name).matchAll(/([^{}]+)\{([^{}]*)\}/g)].map(([, selector = '', body = '']) => ({
    selector: selector.trim().replace(/\s+/g, ' '),
    body,
  })),
);

const GROUNDS = ['ground', 'panel', 'inset'];
const STATES = ['accent', 'ok', 'wait', 'bad'];
const WORDS = ['text', 'quiet', ...STATES];
const TINTS = STATES.map((state) => `${state}-tint`);
const each = (ones: readonly string[], others: readonly string[]): readonly (readonly [string, string])[] =>
  ones.flatMap((one) => others.map((other): readonly [string, string] => [one, other]));

/** What is written on what. */
const WRITTEN = [
  ...each(WORDS, GROUNDS),
  ...each(['text', 'quiet'], TINTS),
  ...STATES.map((state): readonly [string, string] => [state, `${state}-tint`]),
  // A warning that a finding quotes.
  ['wait', 'bad-tint'],
  ...each(['on-strong'], ['accent', 'bad', 'ours', 'other']),
  ['panel', 'text'],
  ['text', 'other 28% panel'],
] as const;

/** What is drawn and means something; page cache and free space have an edge for that. */
const DRAWN = [
  'edge',
  'system',
  'ours',
  'other',
  'plan',
  'rank-0',
  'rank-1',
  'rank-2',
  'rank-3',
  'text',
  ...STATES,
];
/** Lines that only part, and fills that have an edge around them. */
const ONLY_PARTS = ['line', 'cache'];

describe.each(['light', 'dark'] as const)('the colours of the page, %s', (theme) => {
  it.each(WRITTEN)('%s is read on %s', (word, ground) => {
    expect(contrast(colourOf(word, theme), colourOf(ground, theme))).toBeGreaterThanOrEqual(4.5);
  });

  it.each(each(DRAWN, ['panel', 'inset']))('%s is seen on %s', (mark, ground) => {
    expect(contrast(colourOf(mark, theme), colourOf(ground, theme))).toBeGreaterThanOrEqual(3);
  });
});

const RANKS = ['rank-0', 'rank-1', 'rank-2', 'rank-3'];
/** Segments of a memory bar that can touch, left to right. */
const TOUCHING = [
  ...each(['system'], ['other', 'ours', 'cache']),
  ...each(['other'], ['ours', 'cache', 'inset']),
  ...each(['ours'], ['cache', 'inset']),
  ['cache', 'inset'],
] as const;

describe.each(Object.entries(VISIONS))('for a person with %s colour vision', (_, vision) => {
  const apartIn = (theme: 'light' | 'dark', [one, other]: readonly [string, string]): number =>
    apart(colourOf(one, theme), colourOf(other, theme), vision);
  const pairs = RANKS.flatMap((one, at) => each([one], RANKS.slice(at + 1)));

  it.each(pairs)('%s and %s are told apart', (one, other) => {
    expect(apartIn('light', [one, other])).toBeGreaterThan(11.5);
    expect(apartIn('dark', [one, other])).toBeGreaterThan(16);
  });

  it.each(TOUCHING)('%s and %s can touch', (one, other) => {
    expect(apartIn('light', [one, other])).toBeGreaterThan(9.8);
    expect(apartIn('dark', [one, other])).toBeGreaterThan(9.8);
  });
});

describe('the style sheets', () => {
  const used = (properties: RegExp): ReadonlySet<string> =>
    new Set(
      rules.flatMap(({ body }) =>
        [...body.matchAll(properties)].flatMap(([, value = '']) =>
          [...value.matchAll(/var\(--([\w-]+)\)/g)].map(([, name = '']) => name),
        ),
      ),
    );

  it('use no colour but those of the tokens', () => {
    const names = used(/:([^;]*)/g);
    expect([...names].filter((name) => name !== 'mono' && !tokens.has(name))).toEqual([]);
    const bare = rules.filter(({ body }) =>
      /#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(/.test(body.replace(/box-shadow:[^;]*;/g, '')),
    );
    expect(bare.map(({ selector }) => selector)).toEqual([]);
  });

  it('write with no colour, and draw with none, that is not held to a contrast', () => {
    const written = new Set<string>(WRITTEN.map(([word]) => word));
    expect([...used(/(?<![-\w])color:([^;]*)/g)].filter((name) => !written.has(name))).toEqual([]);
    const drawn = used(/(?:background|border|outline|fill|stroke)[\w-]*:([^;]*)/g);
    const known = new Set([...DRAWN, ...GROUNDS, ...TINTS, ...ONLY_PARTS]);
    expect([...drawn].filter((name) => !known.has(name))).toEqual([]);
  });

  it('where one rule gives both, the pair is one of those', () => {
    const pairs = rules.flatMap(({ selector, body }) => {
      const word = /(?<![-\w])color:\s*var\(--([\w-]+)\)/.exec(body)?.[1];
      const plain = /background(?:-color)?:\s*var\(--([\w-]+)\)/.exec(body)?.[1];
      const mix = /background:\s*color-mix\(in srgb, var\(--([\w-]+)\) (\d+%), var\(--([\w-]+)\)\)/.exec(
        body,
      );
      const ground = plain ?? (mix === null ? undefined : `${mix[1]} ${mix[2]} ${mix[3]}`);
      return word === undefined || ground === undefined ? [] : [{ selector, pair: `${word} on ${ground}` }];
    });
    expect(pairs.length).toBeGreaterThan(5);
    const held = new Set(WRITTEN.map(([word, ground]) => `${word} on ${ground}`));
    expect(pairs.filter(({ pair }) => !held.has(pair))).toEqual([]);
  });
});
