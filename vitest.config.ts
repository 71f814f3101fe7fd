import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{src,reconciler,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/fixtures/**'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});
