type Json = Readonly<Record<string, unknown>>;

/** The JSON object in a text, or undefined: for what hosts and tools print, whose shape nobody promises. */
export function parseObject(text: string): Json | undefined {
  const value = parseAny(text);
  return isObject(value) ? value : undefined;
}

/** The JSON array in a text, or undefined. */
export function parseArray(text: string): readonly unknown[] | undefined {
  const value = parseAny(text);
  return Array.isArray(value) ? value : undefined;
}

/** Whether a value is an object and no array. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member's text, or '' where it is none. */
export function textAt(object: Json, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

/** A member's number, or undefined where it is none. */
export function numberAt(object: Json, key: string): number | undefined {
  const value = object[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function parseAny(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Expected: a tool printed an error, or the output was cut.
    return undefined;
  }
}
