import { readFileSync } from 'node:fs';

/** Red, green and blue, 0 to 255. */
export type Rgb = readonly [number, number, number];
export type Theme = 'light' | 'dark';

/** A style sheet of the page without its comments. */
export function readStyles(name: string): string {
  return readFileSync(`src/faces/web/styles/${name}.css`, 'utf8').replace(/\/\*.*?\*\//gs, '');
}

/** The colours of tokens.css by name, without the dashes. */
export const tokens: ReadonlyMap<string, Readonly<Record<Theme, Rgb>>> = new Map(
  [...readStyles('tokens').matchAll(/--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\);/g)].map(
    ([, name = '', light = '', dark = '']) => [name, { light: rgb(light), dark: rgb(dark) }],
  ),
);

function rgb(hex: string): Rgb {
  const at = (from: number): number => Number.parseInt(hex.slice(from, from + 2), 16);
  return [at(1), at(3), at(5)];
}

/** A colour by its name, or a mix of two: "other 28% panel", as `color-mix(in srgb, …)` makes it. */
export function colourOf(name: string, theme: Theme): Rgb {
  const [one, share, other] = name.split(' ');
  const found = tokens.get(one ?? '')?.[theme];
  if (found === undefined) throw new Error(`there is no colour ${name}`);
  if (share === undefined || other === undefined) return found;
  const below = colourOf(other, theme);
  const part = Number.parseFloat(share) / 100;
  const mixed = (at: 0 | 1 | 2): number => found[at] * part + below[at] * (1 - part);
  return [mixed(0), mixed(1), mixed(2)];
}

function linear(value: number): number {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}

/** Contrast of two colours as WCAG 2.2 defines it: 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const luminance = ([r, g, b]: Rgb): number => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

type Matrix = readonly [Rgb, Rgb, Rgb];

/** Full severity, on linear RGB: Machado, Oliveira and Fernandes 2009, table of section 5. */
export const VISIONS: Readonly<Record<string, Matrix>> = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function times(matrix: Matrix, [x, y, z]: Rgb): Rgb {
  const row = ([a, b, c]: Rgb): number => a * x + b * y + c * z;
  return [row(matrix[0]), row(matrix[1]), row(matrix[2])];
}

/** OKLab of linear RGB (B. Ottosson, 2020). */
function okLab(colour: Rgb): Rgb {
  const clamped: Rgb = [bound(colour[0]), bound(colour[1]), bound(colour[2])];
  const [l, m, s] = times(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    clamped,
  );
  return times(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    [Math.cbrt(l), Math.cbrt(m), Math.cbrt(s)],
  );
}

function bound(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** How far apart two colours are for that vision: distance in OKLab × 100. */
export function apart(one: Rgb, other: Rgb, vision: Matrix): number {
  const seen = ([r, g, b]: Rgb): Rgb => okLab(times(vision, [linear(r), linear(g), linear(b)]));
  const [a, b] = [seen(one), seen(other)];
  return 100 * Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}
