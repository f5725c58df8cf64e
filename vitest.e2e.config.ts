import { defineConfig } from 'vitest/config';

// Whole hosts with real OpenSSH servers; needs root. `npm run e2e`.
export default defineConfig({
  test: {
    include: ['test/e2e/*.e2e.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
