// `npm run test:kubernetes`: tests CoreClients on a real API server. It uses the cluster of KUBECONFIG, or starts one
// with the scripts in the folder LAB. It fails if KUBECONFIG is not set and the scripts do not exist, or if the cluster
// already contains other CoreClients.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { KubeConfig, VersionApi } from '@kubernetes/client-node';
import { kubeconfigVariable } from './cluster-of-run.ts';

const project = join(import.meta.dirname, '../..');

interface Found {
  kubeconfig: string;
  stop(): Promise<void>;
}

async function main(): Promise<number> {
  const cluster = await findCluster(process.env);
  if (cluster === undefined) {
    process.stderr.write('There is no cluster to test with: set KUBECONFIG, or LAB to a folder with cluster/up.sh.\n');
    return 1;
  }
  // Ignore the signals: Ctrl-C also ends the tests, and this process must then stop the cluster.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  try {
    return await runTests(cluster.kubeconfig);
  } finally {
    await cluster.stop();
  }
}

async function findCluster(env: NodeJS.ProcessEnv): Promise<Found | undefined> {
  if (env.KUBECONFIG) return { kubeconfig: resolve(env.KUBECONFIG), stop: async () => undefined };
  const scripts = join(resolve(project, env.LAB || '../shared/lab'), 'cluster');
  const script = join(scripts, 'up.sh');
  if (!existsSync(script)) return undefined;
  const kubeconfig = join(env.LAB_HOME || '/var/lib/lab-cluster', 'admin.conf');
  // Use a cluster that is already running, and do not stop it.
  if (await isRunning(kubeconfig)) return { kubeconfig, stop: async () => undefined };
  const started = Date.now();
  process.stdout.write('Starting a cluster…\n');
  const stop = async () => void (await run('bash', [join(scripts, 'down.sh')], {}));
  const code = await run('bash', [script], {});
  if (code !== 0 || !existsSync(kubeconfig)) {
    await stop();
    throw new Error(`${script} did not start a cluster.`);
  }
  process.stdout.write(`It is ready after ${Math.round((Date.now() - started) / 1000)} s.\n`);
  return { kubeconfig, stop };
}

async function isRunning(kubeconfig: string): Promise<boolean> {
  if (!existsSync(kubeconfig)) return false;
  try {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    await config.makeApiClient(VersionApi).getCode();
    return true;
  } catch {
    return false;
  }
}

/** Runs the files one after another, because they share the definition of CoreClients, and one test removes it. */
function runTests(kubeconfig: string): Promise<number> {
  const vitest = join(project, 'node_modules/vitest/vitest.mjs');
  const flags = ['--no-file-parallelism', '--testTimeout=120000', '--hookTimeout=120000'];
  const env = { [kubeconfigVariable]: kubeconfig };
  return run(process.execPath, [vitest, 'run', 'test/kubernetes', ...flags, ...process.argv.slice(2)], env);
}

/** Runs a program, and returns its exit code. */
function run(program: string, args: string[], env: Record<string, string>): Promise<number> {
  const child = spawn(program, args, { cwd: project, env: { ...process.env, ...env }, stdio: 'inherit' });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('exit', (code) => done(code ?? 1));
  });
}

process.exit(await main());
