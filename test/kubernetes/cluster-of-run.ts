// Which cluster a test run is for: test/kubernetes/main.ts tells it by the environment, and the tests run for no other.

/** Name of the variable, which nobody sets by accident. Its value is the path of a kubeconfig. */
export const kubeconfigVariable = 'FORMGATE_TEST_KUBECONFIG';

export function kubeconfigOfRun(env: NodeJS.ProcessEnv = process.env): string {
  const path = env[kubeconfigVariable];
  if (!path) throw new Error('There is no cluster to test with: run npm run test:kubernetes.');
  return path;
}

/** What `npm test` leaves out: these tests are `npm run test:kubernetes`. */
export function withoutCluster(env: NodeJS.ProcessEnv = process.env): string[] {
  return env[kubeconfigVariable] ? [] : ['test/kubernetes/**'];
}
