import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const STYLES = 'src/faces/web/styles';
const read = (name: string): string =>
  readFileSync(`${STYLES}/${name}.css`, 'utf8').replace(/\/\*.*?\*\//gs, '');

type Rgb = readonly [number, number, number];
type Theme = 'light' | 'dark';

/** The colours of tokens.css by name, without the dashes. */
const tokens = new Map(
  [...read('tokens').matchAll(/--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\);/g)].map(
    ([, name = '', light = '', dark = '']) => [name, { light: rgb(light), dark: rgb(dark) }],
  ),
);
/** Every rule of the other style sheets: its selector and what it says. */
const rules = ['page', 'parts'].flatMap((name) =>
  [...read(name).matchAll(/([^{}]+)\{([^{}]*)\}/g)].map(([, selector = '', body = '']) => ({
    selector: selector.trim().replace(/\s+/g, ' '),
    body,
  })),
);

function rgb(hex: string): Rgb {
  const at = (from: number): number => Number.parseInt(hex.slice(from, from + 2), 16);
  return [at(1), at(3), at(5)];
}

function colour(name: string, theme: Theme): Rgb {
  const [one, share, other] = name.split(' ');
  const found = tokens.get(one ?? '')?.[theme];
  if (found === undefined) throw new Error(`there is no colour ${name}`);
  if (share === undefined || other === undefined) return found;
  // As `color-mix(in srgb, …)` does it.
  const below = colour(other, theme);
  const part = Number.parseFloat(share) / 100;
  const mixed = (at: 0 | 1 | 2): number => found[at] * part + below[at] * (1 - part);
  return [mixed(0), mixed(1), mixed(2)];
}

/** Relative luminance and contrast as WCAG 2.2 defines them. */
function luminance([r, g, b]: Rgb): number {
  const linear = (value: number): number => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

function contrast(one: Rgb, other: Rgb): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

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
    expect(contrast(colour(word, theme), colour(ground, theme))).toBeGreaterThanOrEqual(4.5);
  });

  it.each(each(DRAWN, ['panel', 'inset']))('%s is seen on %s', (mark, ground) => {
    expect(contrast(colour(mark, theme), colour(ground, theme))).toBeGreaterThanOrEqual(3);
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
