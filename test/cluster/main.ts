// `npm run test:cluster`: tests the chart on a real cluster. It uses the cluster of KUBECONFIG or, without KUBECONFIG,
// a cluster that the scripts in the folder LAB start and stop. It builds the images, loads them, and runs the suites of
// test/chart and test/cluster. With --images-only, it only builds the images. Other arguments are passed to vitest. The
// trial needs a Keycloak: the one at KEYCLOAK_URL, or one that the script in LAB starts. Settings for other clusters:
//   INGRESS_URL       URL of the ingress from this machine, such as http://127.0.0.1:80
//   INGRESS_CLASS, INGRESS_PRESET, GATEWAY_CLASS   names of the ingress; by default traefik
//   POD_INGRESS_URL   URL of the ingress from pods
//   IMAGE_LOADER      a command that loads an image, given by name, into the cluster; not needed for kind
//   BUILD_IMAGE, RUN_IMAGE, DATA_IMAGE   base images to use instead of those that base-images.sh builds
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type FoundKeycloak, findKeycloak } from '../keycloak/find-keycloak.ts';
import { variables } from '../keycloak/keycloak-of-run.ts';
import { attempt, run } from './commands.ts';
import { buildImages, type Images, loadImages } from './images.ts';

const project = join(import.meta.dirname, '../..');

interface Cluster {
  /** Environment of kubectl, helm and the tests. */
  env: Record<string, string>;
  loader: string | undefined;
  /** Starts the cluster if it is not running. Returns a function that stops the cluster if this call has started it. */
  start(): Promise<() => Promise<void>>;
}

async function main(): Promise<number> {
  const cluster = findCluster();
  if (cluster === undefined)
    throw new Error('There is no cluster to test with: set KUBECONFIG, or LAB to a folder with cluster/up.sh.');
  // Ignore the signals: Ctrl-C also ends the tests, and this process must then stop the cluster.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
  Object.assign(process.env, cluster.env);
  // Build the images before the cluster starts, because its start takes minutes and `--images-only` needs no cluster.
  if (process.argv.includes('--images-only')) {
    await step('Images', buildImages);
    return 0;
  }
  const starting = startKeycloak();
  try {
    return await testOn(cluster, await step('Images', buildImages), starting);
  } finally {
    await (await starting)?.stop();
  }
}

async function testOn(cluster: Cluster, images: Images, starting: Promise<FoundKeycloak | undefined>): Promise<number> {
  const stop = await cluster.start();
  try {
    const keycloak = await starting;
    await step('Images in the cluster', () => loadImages(images, cluster.loader));
    return await runTests({
      FORMGATE_IMAGE: images.formgate,
      FORMGATE_DATA_IMAGE: images.data,
      FORMGATE_PARTS_IMAGE: images.parts,
      ...(keycloak && {
        [variables.url]: keycloak.url,
        [variables.username]: keycloak.username,
        [variables.password]: keycloak.password,
      }),
    });
  } finally {
    await stop();
  }
}

/**
 * Finds or starts a Keycloak while the images are built. Only the trial needs it, so a failure does not stop the other
 * suites.
 */
async function startKeycloak(): Promise<FoundKeycloak | undefined> {
  const named = process.argv.slice(2).filter((argument) => argument.endsWith('.ts'));
  if (named.length > 0 && !named.some((file) => file.includes('trial'))) return undefined;
  return findKeycloak(process.env).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    return undefined;
  });
}

function findCluster(): Cluster | undefined {
  if (process.env.KUBECONFIG)
    return { env: {}, loader: process.env.IMAGE_LOADER || undefined, start: async () => leaveRunning };
  const scripts = join(resolve(project, process.env.LAB || '../shared/lab'), 'cluster');
  if (!existsSync(join(scripts, 'up.sh'))) return undefined;
  const env = {
    KUBECONFIG: join(process.env.LAB_HOME || '/var/lib/lab-cluster', 'admin.conf'),
    PATH: `${process.env.LAB_BIN || '/opt/lab/bin'}:${process.env.PATH ?? ''}`,
    INGRESS_URL: process.env.INGRESS_URL || `http://127.0.0.1:${process.env.LAB_HTTP_PORT || 8000}`,
  };
  return { env, loader: join(scripts, 'load-image.sh'), start: () => startLabCluster(scripts, env.INGRESS_URL) };
}

const leaveRunning = async () => undefined;

async function startLabCluster(scripts: string, ingressUrl: string): Promise<() => Promise<void>> {
  const startIngress = () => run('bash', [join(scripts, 'ingress.sh')], { timeout: 900_000 });
  const { code } = await attempt('kubectl', ['get', '--raw', '/readyz']).catch(() => ({ code: 1 }));
  if (code === 0) {
    const { code: ingress } = await attempt('curl', ['-s', '-o', '/dev/null', ingressUrl]);
    if (ingress !== 0) await startIngress();
    return leaveRunning;
  }
  await step('The lab’s cluster', async () => {
    await run('bash', [join(scripts, 'up.sh')], { timeout: 2_400_000 });
    await startIngress();
  });
  return async () => void (await run('bash', [join(scripts, 'down.sh')]));
}

async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const started = Date.now();
  process.stdout.write(`${name}…\n`);
  const result = await work();
  process.stdout.write(`${name}: ${Math.round((Date.now() - started) / 1000)} s\n`);
  return result;
}

async function runTests(env: Record<string, string>): Promise<number> {
  const vitest = join(project, 'node_modules/vitest/vitest.mjs');
  const config = join(project, 'vitest.cluster.config.ts');
  const { code } = await attempt(process.execPath, [vitest, 'run', '--config', config, ...process.argv.slice(2)], {
    cwd: project,
    env,
    timeout: 3_600_000,
    show: true,
  });
  return code;
}

/** Prints only the message. It contains the output of the failed program, which a stack trace would hide. */
const code = await main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return 1;
});
process.exit(code);
