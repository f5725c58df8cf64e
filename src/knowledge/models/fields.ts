import { isObject } from '../../domain/json.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Reads members of an unvalidated object by their possible names: numbers that are finite and not negative, and so on. */
export type Fields = {
  number(...names: readonly string[]): number | undefined;
  text(...names: readonly string[]): string | undefined;
  list(name: string): readonly unknown[] | undefined;
  flag(name: string): boolean | undefined;
  object(name: string): Json | undefined;
};

/** Bounds what a config may say of itself: anything larger is no model, and would only make sums overflow. */
const LARGEST = 2 ** 40;

export function fieldsOf(from: Json): Fields {
  const first = <T>(names: readonly string[], take: (value: unknown) => T | undefined): T | undefined => {
    for (const name of names) {
      const value = take(from[name]);
      if (value !== undefined) return value;
    }
    return undefined;
  };
  return {
    number: (...names) =>
      first(names, (value) =>
        typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= LARGEST
          ? value
          : undefined,
      ),
    text: (...names) => first(names, (value) => (typeof value === 'string' ? value : undefined)),
    list: (name) => first([name], (value) => (Array.isArray(value) ? value : undefined)),
    flag: (name) => first([name], (value) => (typeof value === 'boolean' ? value : undefined)),
    object: (name) => first([name], (value) => (isObject(value) ? value : undefined)),
  };
}
