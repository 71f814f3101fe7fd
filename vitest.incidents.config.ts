import { defineConfig } from 'vitest/config';
import { listSecondTries } from './test/support/second-tries.ts';
import { endStalledRun } from './test/support/stalled-run.ts';

// Incidents in the running product, which take minutes. `npm run test:incidents` runs them.
export default defineConfig({
  plugins: [endStalledRun(), listSecondTries()],
  test: {
    include: ['test/incidents/**/*.test.ts'],
    setupFiles: ['test/support/log-checks.ts', 'test/support/subset-tester.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 300_000,
  },
});
