import { describe, expect, it } from 'vitest';
import { downAfterEach, FAST, liveThrough, of } from './lab.ts';

downAfterEach();

const LIMIT = 240_000;

describe('a setting that cannot be right on both nodes', () => {
  it.each([
    ['wrong-interface', 'GLOO_SOCKET_IFNAME', '^lo,docker', 'sglang'],
    ['other-cage', 'NCCL_SOCKET_IFNAME', '=enp1s0f0np0', 'vllm'],
  ])(
    '%s: is named with its line, taken away, proved, and serves',
    async (story, variable, value, engine) => {
      const told = await liveThrough(story, { env: FAST });
      expect(told.code).toBe(0);
      const named = of(told.events, 'finding').filter(({ final }) => final);
      expect(named.map((finding) => finding.cause)).toEqual(['wrong-socket-interface']);
      expect(named[0]?.quotes.length).toBeGreaterThan(0);
      expect(of(told.events, 'remedy-applied')).toMatchObject([
        { remedy: 'use-node-addresses', edits: [{ path: `env.${variable}`, from: value }] },
      ]);
      expect(of(told.events, 'remedy-proved')).toMatchObject([{ cause: 'wrong-socket-interface' }]);
      expect(of(told.events, 'serving')[0]).toMatchObject({ engine, answer: '204' });
      expect(of(told.events, 'run-ended')[0]).toMatchObject({ outcome: 'serving' });
    },
    LIMIT,
  );
});
