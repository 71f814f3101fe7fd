// Creates a namespace with everything that a trial installation needs: identity provider, mailbox, the release, and the
// demo data. Each suite creates its own namespace and removes it at the end.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createCountriesRegister } from '../../dev/demo-data/countries.ts';
import { demoConsoleId, platformSeed, waitForNotices, writeDemoData } from '../../dev/demo-data/demo-data.ts';
import { createUrns } from '../../src/service/urn.ts';
import { noticeOutput } from '../support/captured-log.ts';
import { attempt, type Outcome, run } from './commands.ts';
import { ingressOrigin, reachIngress } from './ingress.ts';
import { partsManifests } from './parts-manifests.ts';

const chart = join(import.meta.dirname, '../../charts/formgate');
export const release = 'trial';
/** Prefix of the names of the release's objects. */
export const fullname = 'trial-formgate';

/** Client secret of every service account at the identity provider. */
const serviceSecret = 'a secret of the service accounts of the cluster tests';

export interface World {
  namespace: string;
  /** Host name of the release at the ingress. */
  host: string;
  /** `http://<host>:<port>` of the ingress. */
  url: string;
  kubectl(...args: string[]): Promise<string>;
  /** Runs kubectl and returns its outcome, for any exit code. */
  tryKubectl(...args: string[]): Promise<Outcome>;
  apply(manifests: object[]): Promise<void>;
  /** Runs `helm upgrade --install` with the world's values and `values`. Waits until all pods are ready. */
  install(values?: object, ...flags: string[]): Promise<void>;
  helm(...args: string[]): Promise<string>;
  /** Gets an access token for a client's service account in the realm demo. */
  token(clientId: string): Promise<string>;
  remove(): Promise<void>;
}

/**
 * Creates a namespace in which the identity provider and the mailbox are ready, and no release is installed. `program`
 * is the command of Helm.
 */
export async function createWorld(namespace: string, program = 'helm'): Promise<World> {
  const host = `${namespace}.formgate.test`;
  const url = ingressOrigin(host);
  reachIngress();
  const kubectl = (...args: string[]) => run('kubectl', ['-n', namespace, ...args]);
  const helm = (...args: string[]) => run(program, ['-n', namespace, ...args], { timeout: 900_000 });
  const remove = async (...flags: string[]) => {
    // Uninstalling also removes the release's objects outside the namespace. Deleting the namespace ends the pods.
    await attempt(program, ['-n', namespace, 'uninstall', release]);
    await attempt('kubectl', ['delete', 'namespace', namespace, '--ignore-not-found', ...flags]);
  };
  const apply = async (manifests: object[]) => {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests });
    await run('kubectl', ['-n', namespace, 'apply', '-f', '-'], { input });
  };
  const world: World = {
    namespace,
    host,
    url,
    kubectl,
    tryKubectl: (...args) => attempt('kubectl', ['-n', namespace, ...args]),
    apply,
    helm,
    install: async (values = {}, ...flags) => {
      const files = [worldValues(world), values].map((one) => JSON.stringify(one));
      await installRelease(program, namespace, files, flags);
    },
    token: (clientId) => requestToken(url, clientId),
    // Do not wait for the removal, because the next suite uses another namespace.
    async remove() {
      for (const line of (await readPodLogs(world)).split('\n')) noticeOutput(line);
      await remove('--wait=false');
    },
  };
  // Remove leftovers of an earlier run.
  await remove('--timeout=180s');
  await run('kubectl', ['apply', '-f', '-'], { input: JSON.stringify(restricted(namespace)) });
  await apply(partsManifests({ image: imageOf('PARTS'), publicUrl: `${url}/auth`, serviceSecret, host }));
  await kubectl('rollout', 'status', 'deployment/test-parts', '--timeout=180s');
  await waitForStatus(`${url}/auth/realms/demo/.well-known/openid-configuration`);
  return world;
}

/** Returns the logs of the product's pods. */
export async function readPodLogs({ tryKubectl }: World): Promise<string> {
  const components = ['forms', 'token-handler', 'platform-server', 'reconciler'].join();
  const selector = `app.kubernetes.io/instance=${release},app.kubernetes.io/component in (${components})`;
  const flags = ['--all-containers', '--tail=-1', '--max-log-requests=30'];
  return (await tryKubectl('logs', '-l', selector, ...flags)).stdout;
}

/** Writes the demo data as `npm start` does. An error contains the last log lines of the pods. */
export async function writeWorldData(world: World): Promise<void> {
  try {
    await writeData(world);
  } catch (error) {
    const selector = `app.kubernetes.io/instance=${release}`;
    const { stdout } = await world.tryKubectl('logs', '-l', selector, '--prefix', '--tail=40', '--max-log-requests=20');
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${stdout}`);
  }
}

async function writeData({ url, token }: World): Promise<void> {
  const urns = createUrns('urn:example');
  const admin = await token('demo-admin');
  await waitForStatus(`${url}/form/v1/forms`, 401);
  await waitForStatus(`${url}/configuration/v2/configuration/platform/form-service/latest`, 401);
  await waitForAllReplicas(`${url}/form/v1/registers`, admin, (text) => text.startsWith('200'));
  await writeDemoData({ url, token: admin, urns, publicUrl: url });
  await createCountriesRegister({ formsUrl: url, platformUrl: url, token: admin });
  await waitForNotices({ url, token: admin });
  // Each replica caches clients, so wait until all replicas have read the new client.
  await waitForAllReplicas(`${url}/token-handler/v1/clients`, admin, (text) => text.includes(`"${demoConsoleId}"`));
}

/**
 * Waits for eight correct responses in a row. A replica with a different response would very likely interrupt the row.
 */
async function waitForAllReplicas(url: string, token: string, fits: (text: string) => boolean): Promise<void> {
  let inARow = 0;
  const others = new Map<string, number>();
  for (const deadline = Date.now() + 90_000; Date.now() < deadline && inARow < 8; await delay(250)) {
    const text = await fetchText(url, token);
    inARow = fits(text) ? inARow + 1 : 0;
    const beginning = text.slice(0, 300);
    if (inARow === 0) others.set(beginning, (others.get(beginning) ?? 0) + 1);
  }
  if (inARow >= 8) return;
  const list = [...others].map(([text, times]) => `${times} times ${text}`).join('\n');
  throw new Error(`${url} does not respond as expected after 90 s, but:\n${list}`);
}

/** Returns the status and the body as one text, or the error. */
async function fetchText(url: string, token: string): Promise<string> {
  try {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(20_000) });
    return `${response.status} ${await response.text()}`;
  } catch (error) {
    return String(error);
  }
}

/** Waits until the ingress responds with `status`. */
export async function waitForStatus(url: string, status = 200): Promise<void> {
  let seen = 'nothing';
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await delay(300)) {
    const response = await fetch(url, { redirect: 'manual' }).catch(() => undefined);
    if (response?.status === status) return;
    seen = String(response?.status ?? 'nothing');
  }
  throw new Error(`${url} returned ${seen} for a minute, not ${status}.`);
}

/** Returns the command of Helm 4 if it is installed as `helm4`, otherwise `helm`. */
export async function newestHelm(): Promise<string> {
  const { code } = await attempt('helm4', ['version']).catch(() => ({ code: 1 }));
  return code === 0 ? 'helm4' : 'helm';
}

/** Returns the name of an image that `npm run test:cluster` built. */
export function imageOf(name: 'IMAGE' | 'DATA' | 'PARTS'): string {
  const variable = name === 'IMAGE' ? 'FORMGATE_IMAGE' : `FORMGATE_${name}_IMAGE`;
  const image = process.env[variable];
  if (!image) throw new Error(`${variable} is not set: run npm run test:cluster.`);
  return image;
}

function restricted(namespace: string): object {
  const labels = Object.fromEntries(
    ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
  );
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } };
}

function worldValues({ namespace, host, url }: World): object {
  const [repository, tag] = imageOf('IMAGE').split(/:(?=[^:]+$)/);
  const image = imageOf('DATA');
  const storage = { enabled: false };
  const { tenants } = platformSeed({ platformServer: 'http://x', forms: 'http://x', tokenHandler: 'http://x' }) as {
    tenants: object[];
  };
  return {
    image: { repository, tag },
    access: { url: `http://test-parts.${namespace}.svc:8080/auth`, publicUrl: `${url}/auth` },
    forms: {
      account: { secret: { value: serviceSecret } },
      apply: { enabled: true, secret: { value: serviceSecret } },
      pages: { apply: { enabled: true }, console: { enabled: true } },
    },
    tokenHandler: {
      account: { secret: { value: serviceSecret } },
      allowInsecureRedirectUris: true,
      // The load of the rollout test comes from one person at one address, so these limits are raised.
      env: { PLATFORM_CACHE_TTL: 'PT1S', SESSION_REQUEST_LIMIT: '1000000', TARGET_ADDRESS_LIMIT: '1000000' },
    },
    platformServer: {
      enabled: true,
      mailFrom: 'Formgate <no-reply@example.com>',
      smtp: { value: `smtp://test-parts.${namespace}.svc:2525` },
      seed: { tenants },
    },
    bundled: { enabled: true, postgres: { image, storage }, redis: { image, storage } },
    networkPolicy: {
      ipFamilies: (process.env.CLUSTER_IP_FAMILIES ?? 'IPv4').split(','),
      egress: { smtp: { ports: [2525] } },
    },
    ingress: {
      enabled: true,
      preset: process.env.INGRESS_PRESET || 'traefik',
      // trial.test.ts tests the default, without a rewrite.
      rewrite: true,
      className: process.env.INGRESS_CLASS || 'traefik',
      hosts: [host],
      platformServer: true,
    },
    crds: { keep: false },
  };
}

async function installRelease(program: string, namespace: string, values: string[], flags: string[]): Promise<void> {
  const args = ['-n', namespace, 'upgrade', '--install', release, chart, '--wait', '--timeout', '5m', ...flags];
  const folder = mkdtempSync(join(tmpdir(), 'formgate-values-'));
  try {
    const files = values.flatMap((text, index) => {
      const file = join(folder, `${index}.json`);
      writeFileSync(file, text, { mode: 0o600 });
      return ['--values', file];
    });
    await run(program, [...args, ...files], { timeout: 420_000 });
  } catch (error) {
    const { stdout } = await attempt('kubectl', ['-n', namespace, 'get', 'pods,events']);
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${stdout.slice(-6000)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function requestToken(url: string, clientId: string): Promise<string> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: `${clientId}-secret`,
  });
  const response = await fetch(`${url}/auth/realms/demo/protocol/openid-connect/token`, { method: 'POST', body });
  const tokens: { access_token?: string } = JSON.parse(await response.text());
  if (tokens.access_token === undefined)
    throw new Error(`The identity provider returned ${response.status} to ${clientId}.`);
  return tokens.access_token;
}
