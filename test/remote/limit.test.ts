import { expect, it } from 'vitest';
import { firstKnown, limitTo, pause } from '../../src/remote/limit.ts';

const over = AbortSignal.abort(new Error('over'));

it('a pause ends at once where its signal has aborted before', async () => {
  await expect(pause(60_000, over)).rejects.toThrow('over');
});

it('nothing is begun for a signal that has aborted, and the place stays free', async () => {
  const limit = limitTo(1);
  await expect(limit(over, async () => 'work')).rejects.toThrow('over');
  await expect(limit(new AbortController().signal, async () => 'work')).resolves.toBe('work');
});

it('who leaves the line while waiting takes nobody else’s place', async () => {
  const limit = limitTo(1);
  const leaving = new AbortController();
  const never = new AbortController().signal;
  let end = (): void => undefined;
  const first = limit(never, () => new Promise<void>((resolve) => (end = resolve)));
  const second = limit(leaving.signal, async () => 'second');
  const third = limit(never, async () => 'third');
  leaving.abort(new Error('left'));
  await expect(second).rejects.toThrow('left');
  end();
  await first;
  await expect(third).resolves.toBe('third');
});

it('what work keeps holds its place after its answer, and frees it however it ends', async () => {
  const limit = limitTo(1);
  const never = new AbortController().signal;
  let end = (): void => undefined;
  await limit(never, async (keep) => keep(new Promise((over) => (end = over))));
  let begun = false;
  const next = limit(never, async (keep) => {
    begun = true;
    keep(Promise.reject(new Error('broken')));
  });
  await pause(20, never);
  expect(begun).toBe(false);
  end();
  await next;
  await expect(limit(never, async () => 'free')).resolves.toBe('free');
});

it('the first that came to anything is taken, whoever still works, and nothing is when none did', async () => {
  const works = new Promise<string>(() => undefined);
  expect(await firstKnown([Promise.resolve(undefined), works, Promise.resolve('found')])).toBe('found');
  expect(await firstKnown([Promise.resolve(undefined), Promise.resolve(undefined)])).toBeUndefined();
  await expect(firstKnown([works, Promise.reject(new Error('broken'))])).rejects.toThrow('broken');
});
