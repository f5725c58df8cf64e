import { describe, expect, it } from 'vitest';
import { downAfterEach, FAST, liveThrough, of } from './lab.ts';

downAfterEach();

const LIMIT = 240_000;

describe('what an edit of the recipe mends', () => {
  it.each([
    ['misspelled-flag', 'flag-misspelled', 'drop-flag', '--enable-metrics'],
    ['other-engines-flag', 'flag-of-other-engine', 'drop-flag', ''],
    ['old-ptxas', 'bundled-ptxas-too-old', 'toolkit-ptxas', '/usr/local/cuda/bin/ptxas'],
    ['kernels-missing', 'kernels-not-built-for-sm121', 'proven-kernels', 'marlin'],
  ])(
    '%s: is named, cured once, proved, and serves with the engine that was asked for',
    async (story, cause, remedy, edit) => {
      const told = await liveThrough(story, { env: FAST });
      expect(told.code).toBe(0);
      const named = of(told.events, 'finding').filter(({ final }) => final);
      expect(named.map((finding) => finding.cause)).toEqual([cause]);
      expect(named[0]?.quotes.length).toBeGreaterThan(0);
      expect(of(told.events, 'remedy-applied')).toMatchObject([{ remedy, cause }]);
      expect(JSON.stringify(of(told.events, 'remedy-applied'))).toContain(edit);
      expect(of(told.events, 'remedy-proved')).toMatchObject([{ cause }]);
      expect(of(told.events, 'engine-changed')).toEqual([]);
      expect(of(told.events, 'serving')[0]).toMatchObject({ engine: 'sglang', answer: '204' });
      // What the story does at its end gives everything back, in a run of its own.
      expect(of(told.events, 'run-ended')[0]).toMatchObject({ outcome: 'serving' });
    },
    LIMIT,
  );
});
