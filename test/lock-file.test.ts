import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';

const names = z.record(z.string(), z.string()).optional();
const lock = z
  .object({
    packages: z.record(z.string(), z.object({ dependencies: names, optionalDependencies: names })),
  })
  .parse(JSON.parse(readFileSync('package-lock.json', 'utf8')));

/** Where Node would look for a package from the folder of another, nearest first. */
function places(folder: string, name: string): readonly string[] {
  const above = folder.split('/node_modules/').map((_, at, parts) => parts.slice(0, at + 1));
  const inside = above.reverse().map((parts) => `${parts.join('/node_modules/')}/node_modules/${name}`);
  return [...inside, `node_modules/${name}`].map((place) => place.replace(/^\//, ''));
}

test('the lock file has every package that one of its packages names, so that npm ci accepts it', () => {
  const missing = Object.entries(lock.packages).flatMap(([folder, one]) =>
    Object.keys({ ...one.dependencies, ...one.optionalDependencies })
      .filter((name) => !places(folder, name).some((place) => place in lock.packages))
      .map((name) => `${folder} names ${name}`),
  );
  expect(missing).toEqual([]);
});
