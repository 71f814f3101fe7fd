import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { listSecondTries } from './test/support/second-tries.ts';

// All tests of upgrades, for `npm run test:upgrades`. `npm test` runs only dump.test.ts, which needs the old version's
// dump but not its code.
export default defineConfig({
  plugins: [listSecondTries()],
  test: {
    include: ['test/upgrades/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['leaks', 'log-checks', 'subset-tester'].map((name) => `test/support/${name}.ts`),
    fileParallelism: false,
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/formgate') },
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
