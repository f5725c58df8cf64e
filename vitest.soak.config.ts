import { defineConfig } from 'vitest/config';

// Ten minutes of random faults against eight whole hosts; needs root. `npm run soak`.
export default defineConfig({
  test: {
    include: ['test/e2e/soak/soak.ts'],
    globalSetup: 'test/e2e/setup.ts',
    hookTimeout: 300_000,
    // The table stands as it is printed.
    disableConsoleIntercept: true,
  },
});
