import { describe, expect, it } from 'vitest';
import { FAST, liveThrough, of } from './lab.ts';

describe('two-sparks under other names, users, addresses, ports and sizes', () => {
  it.each([2, 3, 4, 5, 6])(
    'ends as its file says with seed %i',
    async (seed) => {
      const told = await liveThrough('two-sparks', { seed, env: FAST });
      expect(told.stderr).toBe('');
      expect(of(told.events, 'run-ended').map((end) => end.outcome)).toEqual([
        'serving',
        'nothing-to-do',
        'stopped',
        'restored',
      ]);
      expect(of(told.events, 'remedy-proved')).toMatchObject([{ cause: 'loopback-address-advertised' }]);
      expect(told.code).toBe(0);
    },
    120_000,
  );
});
