import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// The tests that run the code of the old version. `npm run test:upgrades` runs them; npm test runs those that need only its dump.
export default defineConfig({
  test: {
    include: ['test/upgrades/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/leaks.ts', 'test/support/log-checks.ts'],
    fileParallelism: false,
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/formgate') },
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
