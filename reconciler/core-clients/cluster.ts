// The CoreClient resources of one namespace, in the cluster that this process belongs to or that KUBECONFIG names: read
// in pages, their status written by server-side apply, Events about them. It asks for nothing beyond that namespace and
// its Role, and does not judge what it reads.
import { randomBytes } from 'node:crypto';
import { accessSync } from 'node:fs';
import { hostname } from 'node:os';
import type { CustomObjectsApi, EventsV1Api, KubeConfig } from '@kubernetes/client-node';
import { type ClusterCalls, createClusterCalls, loadKubeConfig } from './cluster-calls.ts';
import { ClusterError } from './cluster-error.ts';
import {
  apiGroup,
  apiVersion,
  type CoreClientResource,
  type CoreClientStatus,
  kind,
  parsePage,
  plural,
} from './resource.ts';
import type { ClientEvent } from './status.ts';

export interface Cluster {
  readonly namespace: string;
  /** Every resource of the namespace that is not being deleted. Throws ClusterError. */
  list(): Promise<CoreClientResource[]>;
  /** `outdated`: the resource was changed, deleted or made anew since it was read. Throws ClusterError. */
  applyStatus(resource: CoreClientResource, status: CoreClientStatus): Promise<'applied' | 'outdated'>;
  /** Throws ClusterError. */
  tell(resource: CoreClientResource, event: ClientEvent, time: Date): Promise<void>;
  close(): Promise<void>;
}

export interface ClusterOptions {
  env: NodeJS.ProcessEnv;
  /** Undefined for the process's own: the Pod's, or the context's. */
  namespace?: string | undefined;
  /** Milliseconds that one request may take. */
  timeout: number;
  /** Resources in one page of the list. */
  pageSize?: number;
}

const fieldManager = 'formgate-reconciler';
const controller = `${apiGroup}/reconciler`;
const resources = `${plural}.${apiGroup}`;
const path = { group: apiGroup, version: apiVersion, plural };
/** A Pod without it may not call the API server. */
const tokenFile = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** Undefined where there is no Kubernetes: neither KUBECONFIG nor a Pod's service account. */
export async function findCluster(options: ClusterOptions): Promise<Cluster | undefined> {
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST } = options.env;
  if (!KUBECONFIG && !(KUBERNETES_SERVICE_HOST && isReadable(tokenFile))) return undefined;
  const kubernetes = await import('@kubernetes/client-node');
  const config = loadKubeConfig(kubernetes, KUBECONFIG);
  return createCluster(kubernetes, config, options);
}

function createCluster(
  kubernetes: typeof import('@kubernetes/client-node'),
  config: KubeConfig,
  { namespace: given, timeout, pageSize = 500 }: ClusterOptions,
): Cluster {
  const namespace = given || config.getContextObject(config.getCurrentContext())?.namespace?.trim() || 'default';
  const objects = config.makeApiClient(kubernetes.CustomObjectsApi);
  const events = config.makeApiClient(kubernetes.EventsV1Api);
  const calls = createClusterCalls({ kubernetes, timeout });
  const place = { ...path, namespace };
  return {
    namespace,
    list: () => listAll({ calls, objects, place, pageSize }),
    async applyStatus({ name, resourceVersion }, status) {
      const body = {
        apiVersion: `${apiGroup}/${apiVersion}`,
        kind,
        metadata: { name, namespace, resourceVersion },
        status,
      };
      try {
        await calls.call(`patch ${plural}/status.${apiGroup}`, (options) =>
          objects.patchNamespacedCustomObjectStatus(
            { ...place, name, body, fieldManager, force: true },
            kubernetes.setHeaderOptions('Content-Type', kubernetes.PatchStrategy.ServerSideApply, options),
          ),
        );
        return 'applied';
      } catch (error) {
        if (error instanceof ClusterError && (error.kind === 'absent' || error.kind === 'conflict')) return 'outdated';
        throw error;
      }
    },
    tell: (resource, event, time) => createEvent({ kubernetes, calls, events, namespace }, resource, event, time),
    close: calls.close,
  };
}

interface Listing {
  calls: ClusterCalls;
  objects: CustomObjectsApi;
  place: typeof path & { namespace: string };
  pageSize: number;
}

/** From the beginning again when the list expires between two pages (410): half a list must never be taken for all. */
async function listAll(listing: Listing): Promise<CoreClientResource[]> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await listOnce(listing);
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      if (error.kind === 'absent')
        throw new ClusterError('absent', `list ${resources}`, {
          why: 'the cluster has no such custom resource definition: install the chart, or its CRD',
        });
      if (error.kind !== 'expired' || restarts === 2) throw error;
    }
  }
}

async function listOnce({ calls, objects, place, pageSize }: Listing): Promise<CoreClientResource[]> {
  const found: CoreClientResource[] = [];
  for (let next: string | undefined; ; ) {
    const token = next === undefined ? {} : { _continue: next };
    const page = await calls.call(`list ${resources}`, async (options): Promise<unknown> => {
      return objects.listNamespacedCustomObject({ ...place, limit: pageSize, ...token }, options);
    });
    const parsed = parsePage(page);
    if (!parsed) throw new ClusterError('failed', `list ${resources}`, { why: 'the answer is no list' });
    found.push(...parsed.resources);
    if (parsed.next === undefined) return found;
    next = parsed.next;
  }
}

interface EventPlace {
  kubernetes: typeof import('@kubernetes/client-node');
  calls: ClusterCalls;
  events: EventsV1Api;
  namespace: string;
}

async function createEvent(
  { kubernetes, calls, events, namespace }: EventPlace,
  { name, uid, resourceVersion }: CoreClientResource,
  { type, reason, note }: ClientEvent,
  time: Date,
): Promise<void> {
  const body = {
    // Named here, and after what it regards, within what a name may hold: a repeat makes no second one.
    metadata: { name: `${name.slice(0, 200).replace(/[^a-z0-9]+$/, '')}.${randomBytes(8).toString('hex')}`, namespace },
    eventTime: new kubernetes.V1MicroTime(time),
    regarding: { apiVersion: `${apiGroup}/${apiVersion}`, kind, name, namespace, uid, resourceVersion },
    type,
    reason,
    note,
    action: 'Sync',
    reportingController: controller,
    reportingInstance: hostname().slice(0, 128),
  };
  try {
    await calls.call('create events.events.k8s.io', (options) =>
      events.createNamespacedEvent({ namespace, body }, options),
    );
  } catch (error) {
    // It was made by a try whose answer was lost.
    if (!(error instanceof ClusterError && error.kind === 'conflict')) throw error;
  }
}

function isReadable(file: string): boolean {
  try {
    accessSync(file);
    return true;
  } catch {
    return false;
  }
}
