// The cluster of a test run, which test/kubernetes/main.ts passes in the environment. The tests use no other cluster.

/**
 * Name of the environment variable, chosen so that no one sets it by accident. Its value is the path of a kubeconfig.
 */
export const kubeconfigVariable = 'FORMGATE_TEST_KUBECONFIG';

export function kubeconfigOfRun(env: NodeJS.ProcessEnv = process.env): string {
  const path = env[kubeconfigVariable];
  if (!path) throw new Error('There is no cluster to test with: run npm run test:kubernetes.');
  return path;
}

/** Returns the files that `npm test` excludes because `npm run test:kubernetes` runs them. */
export function withoutCluster(env: NodeJS.ProcessEnv = process.env): string[] {
  return env[kubeconfigVariable] ? [] : ['test/kubernetes/**'];
}
