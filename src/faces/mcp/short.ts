import { gibNumber } from '../../domain/units.ts';

/** Answers for a model's context: short, and they say what they left out. */
export type LeftOut = {
  /** The first ones; the rest is counted. `more` says how to get it. */
  first<T>(items: readonly T[], most: number, what: string, more: string): readonly T[];
  /** The text, cut at so many characters. */
  cut(text: string, most: number, what: string, more: string): string;
  /** Sentences about all that was left out. */
  readonly said: string[];
};

/** Keeps count of what one answer leaves out. */
export function newLeftOut(): LeftOut {
  const said: string[] = [];
  return {
    said,
    first(items, most, what, more) {
      if (items.length > most) said.push(`${items.length - most} of ${items.length} ${what}; ${more}`);
      return items.slice(0, most);
    },
    cut(text, most, what, more) {
      if (text.length <= most) return text;
      said.push(`${text.length - most} of ${text.length} characters of ${what}; ${more}`);
      return text.slice(0, most);
    },
  };
}

/** Bytes as GiB with one decimal, as a number. */
export function inGib(bytes: number): number {
  return Number(gibNumber(bytes));
}
