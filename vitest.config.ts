import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Of stories in one file that may run at once.
    maxConcurrency: 3,
    // The stories wait more than they compute: two files at once even on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
  },
});
