import { defineConfig } from 'vitest/config';
import { leftOut } from './test/support/system-parts.ts';

export default defineConfig({
  test: {
    include: ['{src,reconciler,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/fixtures/**', ...leftOut()],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});
