import { defineConfig } from 'vitest/config';

// The suites that need a cluster or its tools. `npm run test:cluster` runs them.
export default defineConfig({
  test: {
    include: ['test/{chart,cluster}/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // The suites share a cluster, and some generate load.
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
});
