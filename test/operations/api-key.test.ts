import { expect, it } from 'vitest';
import { apiKeyFrom } from '../../src/operations/api-key.ts';
import type { Secrets } from '../../src/remote/host.ts';

const world = (values: Readonly<Record<string, string>>): { readonly secrets: Secrets } => ({
  secrets: {
    value: (name) => values[name],
    sudoPassword: () => Promise.resolve(undefined),
    all: () => Object.values(values),
  },
});

it('a key that is not set where it is read from is the user’s to mend, and named', () => {
  expect(apiKeyFrom(world({}), undefined)).toBeUndefined();
  expect(apiKeyFrom(world({ KEY: 'abc' }), 'KEY')).toBe('abc');
  for (const values of [{}, { KEY: '' }])
    expect(() => apiKeyFrom(world(values), 'KEY')).toThrow(/read from KEY, and that is not set here/);
});
