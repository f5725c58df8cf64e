const ESCAPES =
  /\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|\[[0-?]*[ -/]*[@-~]?|[ -/]*[0-~]?)/g;
/** C0 but newline and tab, DEL, C1, line separators, and the marks that turn the direction of text. */
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Text from a host or an engine, safe to write on a terminal: no control characters, no escape sequences. */
export function clean(text: string): string {
  return text
    .replace(/\r\n/g, '\n')
    .replace(ESCAPES, '')
    .replace(/\x9b[0-?]*[ -/]*[@-~]?/g, '')
    .replace(/\t/g, ' ')
    .replace(CONTROLS, '');
}

/** The same value with every string in it cleaned. Data only (plain JSON). */
export function cleanAll<T>(value: T): T {
  return map(value);
}

// The shape is kept, so the type is too; the compiler cannot follow that through the walk.
function map<T>(value: T): T;
function map(value: unknown): unknown {
  if (typeof value === 'string') return clean(value);
  if (Array.isArray(value)) return value.map((item: unknown) => map(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, map(item)]));
}

/** JSON whose bytes a terminal can show: what JSON.stringify leaves of control characters is escaped. */
export function safeJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /[\x7f-\x9f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
