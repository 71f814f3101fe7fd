// Selects the suites of the chart and the cluster: `npm run test:cluster` runs all, with `CLUSTER=short` fewer.

/**
 * Returns the test files that this run leaves out. With `CLUSTER=short`, these are slow files whose subject other
 * suites test too, apart from the cluster or the additional label.
 */
export const withoutSlowSuites = (env: NodeJS.ProcessEnv = process.env): string[] =>
  env.CLUSTER === 'short' ? ['test/chart/prometheus-rule-matchers.test.ts', 'test/cluster/config-check.test.ts'] : [];
