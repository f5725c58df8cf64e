import { defineConfig } from 'vitest/config';

// Hosts with real OpenSSH servers, quick ones and whole ones; needs root. `npm run e2e`.
export default defineConfig({
  test: {
    include: ['test/e2e/*.e2e.ts'],
    globalSetup: 'test/e2e/setup.ts',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
