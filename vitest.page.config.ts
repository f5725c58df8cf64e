import { defineConfig } from 'vitest/config';

// The dashboard in a real Chromium, over the embedded lab: `npm run page`.
export default defineConfig({
  test: {
    include: ['test/page/*.page.ts'],
    testTimeout: 480_000,
    hookTimeout: 120_000,
    // As long as Playwright waits for anything.
    expect: { poll: { timeout: 30_000 } },
    fileParallelism: false,
  },
});
