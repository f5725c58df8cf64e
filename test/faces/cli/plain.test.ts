import { expect, test } from 'vitest';
import { blank, foldAll } from '../../../src/domain/run-state.ts';
import { plainProgress } from '../../../src/faces/cli/output.ts';
import { signOfLife } from '../../../src/faces/cli/plain.ts';
import { styleOf } from '../../../src/faces/cli/style.ts';
import { storyEvents, storyTime, storyUntil } from '../../pretend/story-events.ts';
import '../golden.ts';

const style = styleOf({}, { LANG: 'C.UTF-8' }, 0, false);

/** Plain progress that was told the story up to then; `at` moves its clock on, in seconds of the story. */
function plain(seconds: number) {
  let now = storyTime(seconds);
  let text = '';
  const progress = plainProgress(
    (more) => {
      text += more;
    },
    style,
    { now: () => now, every: 20 },
  );
  for (const event of storyUntil(seconds)) progress.event(event);
  return {
    at: async (later: number): Promise<string> => {
      text = '';
      now = storyTime(later);
      await new Promise((done) => setTimeout(done, 60));
      return text;
    },
    stop: progress.stop,
  };
}

test('where no event came for long, a line says what is waited for still, with the Now line’s words', async () => {
  const { at, stop } = plain(172);
  const said = await at(203);
  stop();
  expect(said).toBe(
    '10:06:04  still          Loading weights: 64 % on spark-a, 52 % on spark-b; for 0:52; then KV cache\n',
  );
});

test('while a question stands there is no sign of life, and none after the end', async () => {
  for (const seconds of [8, 300]) {
    const { at, stop } = plain(seconds);
    expect(await at(seconds + 60)).toBe('');
    stop();
  }
  expect(signOfLife(blank, 0)).toBeUndefined();
  expect(signOfLife(foldAll(storyEvents), storyTime(300))).toBeUndefined();
});

test('a host that says nothing is named at once, so that nobody waits without knowing for whom', () => {
  let text = '';
  const progress = plainProgress(
    (more) => {
      text += more;
    },
    style,
    { now: () => storyTime(0) },
  );
  progress.live({ kind: 'quiet', host: 'spark-b' });
  progress.stop();
  expect(text).toMatch(/^\d\d:\d\d:\d\d {2}still {10}spark-b says nothing; looking whether it is there\n$/);
});
