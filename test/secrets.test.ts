import { expect, test } from 'vitest';
import { makeWorld } from '../src/world.ts';

type Asked = { readonly node: string; readonly purpose: string | undefined; readonly again: boolean };

/** The secrets of a world whose person types these, one after the other. */
function secretsOf(typed: string[], passwords: Readonly<Record<string, string>> = {}) {
  const asked: Asked[] = [];
  const { secrets } = makeWorld({
    cluster: 'none.yaml',
    sudoPasswordFiles: [],
    passwords,
    askPassword: async (node, why) => {
      asked.push({ node, ...why });
      return typed.shift();
    },
    live: () => undefined,
    onEvent: () => undefined,
    signal: new AbortController().signal,
    env: {},
  });
  return { secrets, asked };
}

test('a password is asked for once for all nodes, with what it is for', async () => {
  const { secrets, asked } = secretsOf(['right']);
  expect(await secrets.sudoPassword('a', 'Stop it')).toBe('right');
  expect(await secrets.sudoPassword('b', 'Stop that')).toBe('right');
  expect(asked).toEqual([{ node: 'a', purpose: 'Stop it', again: false }]);
});

test('one that a node does not take is asked for twice more there, and what was typed is kept from the logs', async () => {
  const { secrets, asked } = secretsOf(['wrong', 'wrong too', 'wrong again', 'never']);
  expect(await secrets.sudoPassword('a')).toBe('wrong');
  expect(await secrets.otherSudoPassword?.('a', 'wrong')).toBe('wrong too');
  expect(await secrets.otherSudoPassword?.('a', 'wrong too')).toBe('wrong again');
  expect(await secrets.otherSudoPassword?.('a', 'wrong again')).toBeUndefined();
  expect(asked.map(({ again }) => again)).toEqual([false, true, true]);
  expect(secrets.all()).toEqual(['wrong', 'wrong too', 'wrong again']);
});

test('what was typed anew for one node is tried on the next before anybody is asked', async () => {
  const { secrets, asked } = secretsOf(['wrong', 'right']);
  await secrets.sudoPassword('a');
  expect(await secrets.otherSudoPassword?.('a', 'wrong')).toBe('right');
  expect(await secrets.otherSudoPassword?.('b', 'wrong')).toBe('right');
  expect(asked.length).toBe(2);
});

test('a password from a file or a story is not asked for anew', async () => {
  const { secrets, asked } = secretsOf(['typed'], { a: 'known' });
  expect(await secrets.sudoPassword('a')).toBe('known');
  expect(await secrets.otherSudoPassword?.('a', 'known')).toBeUndefined();
  expect(asked).toEqual([]);
});
