import fc from 'fast-check';

type Schema = Readonly<Record<string, unknown>>;

/** Values that a JSON Schema lets through, for the parts of JSON Schema that our document uses. */
export function arbitraryOf(
  schema: unknown,
  hints: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  key = '',
): fc.Arbitrary<unknown> {
  const hint = hints[key];
  if (hint !== undefined) return hint;
  const one: Schema = isSchema(schema) ? schema : {};
  const some = one['anyOf'] ?? one['oneOf'];
  if (Array.isArray(some)) return fc.oneof(...some.map((inner: unknown) => arbitraryOf(inner, hints)));
  if (Array.isArray(one['enum'])) return fc.constantFrom(...one['enum']);
  if ('const' in one) return fc.constant(one['const']);
  const number = (name: string, fallback: number): number =>
    typeof one[name] === 'number' ? Math.max(-(2 ** 31), Math.min(one[name], 2 ** 31)) : fallback;
  switch (one['type']) {
    case 'object':
      return objectOf(one, hints);
    case 'array':
      return fc.array(arbitraryOf(one['items'], hints), { maxLength: 3 });
    case 'integer':
      return fc.integer({ min: number('minimum', -5), max: number('maximum', 2000) });
    case 'number':
      return fc.double({ min: number('minimum', -5), max: number('maximum', 2000), noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'string':
      return typeof one['pattern'] === 'string'
        ? fc.stringMatching(new RegExp(one['pattern']))
        : fc.string({
            minLength: number('minLength', 0),
            maxLength: Math.min(40, number('maxLength', 40)),
            unit: 'grapheme',
          });
    default:
      return fc.jsonValue();
  }
}

function objectOf(
  schema: Schema,
  hints: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<unknown> {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  const needed = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
  const model = Object.fromEntries(
    Object.entries(properties).map(([key, inner]) => [key, arbitraryOf(inner, hints, key)]),
  );
  return fc.record(model, { requiredKeys: needed.filter((key) => key in model) });
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
