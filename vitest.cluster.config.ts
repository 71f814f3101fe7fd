import { defineConfig } from 'vitest/config';
import { withoutSlowSuites } from './test/cluster/selection.ts';
import { listSecondTries } from './test/support/second-tries.ts';
import { endStalledRun } from './test/support/stalled-run.ts';

/** These suites need a cluster; the other suites of the chart only render the chart. */
const withCluster = ['test/chart/{api-server,autoscaling,release}.test.ts', 'test/cluster/**/*.test.ts'];

// The suites that need a cluster or its tools. `npm run test:cluster` runs them.
export default defineConfig({
  // This limit is longer than the longest timeout of these suites.
  plugins: [endStalledRun(1_000_000), listSecondTries()],
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/log-checks.ts', 'test/support/subset-tester.ts'],
    testTimeout: 180_000,
    hookTimeout: 300_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'chart',
          include: ['test/chart/**/*.test.ts'],
          exclude: [...withCluster, ...withoutSlowSuites()],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        // The suites share a cluster, and some generate load.
        test: {
          name: 'cluster',
          include: withCluster,
          exclude: withoutSlowSuites(),
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
