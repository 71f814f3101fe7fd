// Creates a namespace in the cluster of this test run, the CustomResourceDefinition of CoreClients, and an account with
// the chart's Role. The account calls the API server through a proxy that can break calls. Rejects a cluster that
// already contains other CoreClients.
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ApiException,
  ApiextensionsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  EventsV1Api,
  KubeConfig,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
  type V1PolicyRule,
} from '@kubernetes/client-node';
import { stringify } from 'yaml';
import { apiGroup, apiVersion, type CoreClientStatus, kind, plural } from '../../reconciler/core-clients/resource.ts';
import { type ApiProxy, startApiProxy } from './api-proxy.ts';
import { coreClientsDefinition, reconcilerRules } from './chart-parts.ts';
import { kubeconfigOfRun } from './cluster-of-run.ts';

export interface CoreClientObject {
  metadata: {
    name: string;
    uid: string;
    generation: number;
    resourceVersion: string;
    creationTimestamp: string;
    managedFields?: { manager: string; operation: string; subresource?: string }[];
  };
  spec: Record<string, unknown>;
  status?: CoreClientStatus;
}

export interface Lab {
  /** Kubeconfig of the cluster's administrator. */
  admin: KubeConfig;
  namespace: string;
  /** Path of a kubeconfig for the reconciler's account, through the proxy. */
  kubeconfig: string;
  /** Path of a kubeconfig for the reconciler's account, with direct access to the API server. */
  directKubeconfig: string;
  proxy: ApiProxy;
  objects: CustomObjectsApi;
  /** Creates a CoreClient. Throws ApiException. */
  create(name: string, spec: Record<string, unknown>, namespace?: string): Promise<CoreClientObject>;
  read(name: string): Promise<CoreClientObject>;
  /** Applies a JSON merge patch to a CoreClient. */
  patch(name: string, patch: object): Promise<CoreClientObject>;
  remove(name: string): Promise<void>;
  removeAll(): Promise<void>;
  /** Returns type and reason of the Events about a CoreClient, such as `Warning Duplicate`, oldest first. */
  events(name: string): Promise<string[]>;
  /** Replaces the rules in the Role of the reconciler's account. */
  allow(rules: V1PolicyRule[]): Promise<void>;
  close(): Promise<void>;
}

const ours = 'formgate-test-';
const account = 'reconciler';

export async function startLab(): Promise<Lab> {
  const admin = new KubeConfig();
  admin.loadFromFile(kubeconfigOfRun());
  const objects = admin.makeApiClient(CustomObjectsApi);
  const namespace = `${ours}${randomBytes(4).toString('hex')}`;
  await installDefinition(admin);
  await admin.makeApiClient(CoreV1Api).createNamespace({ body: { metadata: { name: namespace } } });
  const token = await createAccount(admin, namespace);
  const { server, ca } = await clusterOf(admin);
  const proxy = await startApiProxy({ server, ca });
  const folder = await mkdtemp(join(tmpdir(), 'formgate-kubernetes-'));
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigText({ server: proxy.url, token, namespace }), { mode: 0o600 });
  const directKubeconfig = join(folder, 'direct');
  await writeFile(directKubeconfig, kubeconfigText({ server, ca, token, namespace }), { mode: 0o600 });
  return {
    admin,
    namespace,
    kubeconfig,
    directKubeconfig,
    proxy,
    objects,
    ...createActions(admin, namespace),
    allow: (rules) => replaceRole(admin, namespace, rules),
    async close() {
      await proxy.close();
      await rm(folder, { recursive: true });
      await removeDefinition(admin);
      await admin.makeApiClient(CoreV1Api).deleteNamespace({ name: namespace, gracePeriodSeconds: 0 });
    },
  };
}

/** Returns a CoreClient as it is sent to the API server. */
export function manifest(name: string, spec: Record<string, unknown>) {
  return { apiVersion: `${apiGroup}/${apiVersion}`, kind, metadata: { name }, spec };
}

const mergePatch = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
const applyPatch = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply);

function createActions(admin: KubeConfig, namespace: string) {
  const objects = admin.makeApiClient(CustomObjectsApi);
  const events = admin.makeApiClient(EventsV1Api);
  const place = { group: apiGroup, version: apiVersion, plural, namespace };
  return {
    create: (name, spec, elsewhere = namespace): Promise<CoreClientObject> =>
      objects.createNamespacedCustomObject({ ...place, namespace: elsewhere, body: manifest(name, spec) }),
    read: (name): Promise<CoreClientObject> => objects.getNamespacedCustomObject({ ...place, name }),
    patch: (name, body): Promise<CoreClientObject> =>
      objects.patchNamespacedCustomObject({ ...place, name, body }, mergePatch),
    remove: async (name) => void (await objects.deleteNamespacedCustomObject({ ...place, name })),
    removeAll: async () => void (await objects.deleteCollectionNamespacedCustomObject(place)),
    async events(name) {
      const { metadata }: CoreClientObject = await objects.getNamespacedCustomObject({ ...place, name });
      const fieldSelector = `regarding.uid=${metadata.uid}`;
      const { items } = await events.listNamespacedEvent({ namespace, fieldSelector });
      // The Kubernetes client library does not parse `eventTime`.
      const time = (item: (typeof items)[number]) => String(item.eventTime);
      return items.sort((a, b) => (time(a) < time(b) ? -1 : 1)).map(({ type, reason }) => `${type} ${reason}`);
    },
  } satisfies Partial<Lab>;
}

/** Installs the CustomResourceDefinition of CoreClients, and waits until CoreClients can be created. */
export async function installDefinition(admin: KubeConfig): Promise<void> {
  await refuseOthers(admin);
  const api = admin.makeApiClient(ApiextensionsV1Api);
  const body = coreClientsDefinition();
  const name = body.metadata?.name ?? '';
  for (let waited = 0; waited < 600; waited += 1) {
    try {
      await api.patchCustomResourceDefinition({ name, body, fieldManager: 'formgate-test', force: true }, applyPatch);
      const { status, metadata } = await api.readCustomResourceDefinition({ name });
      const isEstablished = status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True');
      if (isEstablished && !metadata?.deletionTimestamp) return await waitForResources(admin);
    } catch (error) {
      // These statuses mean that an earlier definition is still being removed.
      if (!(error instanceof ApiException && [404, 409].includes(error.code))) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('The definition of CoreClients was not established within a minute.');
}

/**
 * Removes the CustomResourceDefinition of CoreClients, and with it every CoreClient. Waits until the removal is
 * complete.
 */
export async function removeDefinition(admin: KubeConfig): Promise<void> {
  const api = admin.makeApiClient(ApiextensionsV1Api);
  const name = coreClientsDefinition().metadata?.name ?? '';
  for (let waited = 0; waited < 600; waited += 1) {
    try {
      await api.deleteCustomResourceDefinition({ name });
    } catch (error) {
      if (error instanceof ApiException && error.code === 404) return;
      throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('The definition of CoreClients was not removed within a minute.');
}

async function waitForResources(admin: KubeConfig): Promise<void> {
  const objects = admin.makeApiClient(CustomObjectsApi);
  for (let waited = 0; waited < 600; waited += 1) {
    try {
      await objects.listCustomObjectForAllNamespaces({
        group: apiGroup,
        version: apiVersion,
        resourcePlural: plural,
        limit: 1,
      });
      return;
    } catch (error) {
      if (!(error instanceof ApiException && error.code === 404)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('CoreClients were not served within a minute.');
}

/** Throws if the cluster has other CoreClients: the tests remove the definition, and thereby every CoreClient. */
async function refuseOthers(admin: KubeConfig): Promise<void> {
  const objects = admin.makeApiClient(CustomObjectsApi);
  try {
    const name = coreClientsDefinition().metadata?.name ?? '';
    const { metadata } = await admin.makeApiClient(ApiextensionsV1Api).readCustomResourceDefinition({ name });
    const release = metadata?.annotations?.['meta.helm.sh/release-name'];
    if (release)
      throw new Error(`The definition of CoreClients belongs to the release ${release}: tests would remove it.`);
    const list: { items: { metadata: { namespace: string } }[] } = await objects.listCustomObjectForAllNamespaces({
      group: apiGroup,
      version: apiVersion,
      resourcePlural: plural,
    });
    const foreign = list.items.find(({ metadata }) => !metadata.namespace.startsWith(ours));
    if (foreign)
      throw new Error(`This cluster has CoreClients in ${foreign.metadata.namespace}: tests would remove them.`);
  } catch (error) {
    if (!(error instanceof ApiException && error.code === 404)) throw error;
  }
}

async function createAccount(admin: KubeConfig, namespace: string): Promise<string> {
  const core = admin.makeApiClient(CoreV1Api);
  const rbac = admin.makeApiClient(RbacAuthorizationV1Api);
  await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: account } } });
  await rbac.createNamespacedRole({ namespace, body: { metadata: { name: account }, rules: reconcilerRules() } });
  await rbac.createNamespacedRoleBinding({
    namespace,
    body: {
      metadata: { name: account },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  });
  const { status } = await core.createNamespacedServiceAccountToken({
    name: account,
    namespace,
    body: { spec: { audiences: [], expirationSeconds: 7_200 } },
  });
  return status?.token ?? '';
}

/**
 * Replaces the rules in the Role of the reconciler's account. The API server's authorizer needs a moment to read the
 * new rules.
 */
async function replaceRole(admin: KubeConfig, namespace: string, rules: V1PolicyRule[]): Promise<void> {
  const rbac = admin.makeApiClient(RbacAuthorizationV1Api);
  await rbac.replaceNamespacedRole({ name: account, namespace, body: { metadata: { name: account }, rules } });
}

/** Returns the address of the API server, and its certificate authority. */
async function clusterOf(admin: KubeConfig): Promise<{ server: string; ca: string | undefined }> {
  const cluster = admin.getCurrentCluster();
  if (!cluster) throw new Error('The kubeconfig has no current context.');
  const { server, caData, caFile } = cluster;
  if (caData) return { server, ca: Buffer.from(caData, 'base64').toString() };
  return { server, ca: caFile ? await readFile(caFile, 'utf8') : undefined };
}

interface Access {
  server: string;
  ca?: string | undefined;
  token: string;
  namespace: string;
}

function kubeconfigText({ server, ca, token, namespace }: Access): string {
  // The client library uses plain HTTP only if it does not verify certificates.
  const trust = server.startsWith('http:') ? { 'insecure-skip-tls-verify': true } : trusting(ca);
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster: { server, ...trust } }],
    users: [{ name: account, user: { token } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: account, namespace } }],
    'current-context': 'lab',
  });
}

const trusting = (ca: string | undefined) =>
  ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
