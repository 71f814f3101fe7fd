// Reads the CoreClient resources of one namespace in pages, writes their status by server-side apply, and creates
// Events. KUBECONFIG selects the cluster. Without KUBECONFIG, the Pod's own cluster is used. The account that calls the
// API server needs only the permissions of the chart's Role in that namespace. This module does not validate resources.
import { randomBytes } from 'node:crypto';
import { accessSync } from 'node:fs';
import { hostname } from 'node:os';
import type { CustomObjectsApi, EventsV1Api, KubeConfig } from '@kubernetes/client-node';
import { createCursorCheck } from '../../src/service/page-cursors.ts';
import { type ClusterCalls, ClusterError, createClusterCalls, loadKubeConfig } from './cluster-calls.ts';
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
  /** Returns all resources of the namespace that are not being deleted. Throws ClusterError. */
  list(): Promise<CoreClientResource[]>;
  /**
   * Writes the status. Returns `outdated` if the resource was changed, deleted or replaced since it was read. Throws
   * ClusterError.
   */
  applyStatus(resource: CoreClientResource, status: CoreClientStatus): Promise<'applied' | 'outdated'>;
  /**
   * Creates an Event about a resource that may no longer exist. Does nothing and returns false while the API server
   * keeps (by default for an hour) the Event of an earlier call with the same `once`. Throws ClusterError.
   */
  createEvent(about: EventSubject, event: ClientEvent, time: Date, once?: string): Promise<boolean>;
  close(): Promise<void>;
}

/** The object that an Event is about. */
export type EventSubject = Pick<CoreClientResource, 'name'> &
  Partial<Pick<CoreClientResource, 'uid' | 'resourceVersion'>>;

export interface ClusterOptions {
  env: NodeJS.ProcessEnv;
  /** Namespace of the resources. The default is the namespace of the Pod or of the kubeconfig context. */
  namespace?: string | undefined;
  /** Time limit in milliseconds for one attempt of a request. */
  timeout: number;
  /** Maximum number of resources on a page of the list. */
  pageSize?: number;
}

const fieldManager = 'formgate-reconciler';
const controller = `${apiGroup}/reconciler`;
const resources = `${plural}.${apiGroup}`;
const path = { group: apiGroup, version: apiVersion, plural };
/** The token of the Pod's service account. Without this file, a Pod has no access to the API server. */
const tokenFile = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/**
 * Connects to the cluster that KUBECONFIG or the Pod's service account selects. Returns undefined if there is neither.
 */
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
  const collection = { ...path, namespace };
  return {
    namespace,
    list: () => listAll({ calls, objects, collection, pageSize }),
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
            { ...collection, name, body, fieldManager, force: true },
            kubernetes.setHeaderOptions('Content-Type', kubernetes.PatchStrategy.ServerSideApply, options),
          ),
        );
        return 'applied';
      } catch (error) {
        if (error instanceof ClusterError && (error.kind === 'absent' || error.kind === 'conflict')) return 'outdated';
        throw error;
      }
    },
    createEvent: (about, event, time, once) =>
      createEvent({ kubernetes, calls, events, namespace }, about, event, { time, once }),
    close: calls.close,
  };
}

interface Listing {
  calls: ClusterCalls;
  objects: CustomObjectsApi;
  collection: typeof path & { namespace: string };
  pageSize: number;
}

/**
 * Lists all resources. Starts again if the list expires between two pages (410), so it never returns a partial list.
 */
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

async function listOnce({ calls, objects, collection, pageSize }: Listing): Promise<CoreClientResource[]> {
  const found: CoreClientResource[] = [];
  const faultOf = createCursorCheck();
  for (let next: string | undefined; ; ) {
    const token = next === undefined ? {} : { _continue: next };
    const page = await calls.call(`list ${resources}`, async (options): Promise<unknown> => {
      return objects.listNamespacedCustomObject({ ...collection, limit: pageSize, ...token }, options);
    });
    const parsed = parsePage(page);
    if (!parsed) throw new ClusterError('failed', `list ${resources}`, { why: 'the response is not a list' });
    found.push(...parsed.resources);
    if (parsed.next === undefined) return found;
    const fault = faultOf(parsed.next);
    if (fault !== undefined)
      throw new ClusterError('failed', `list ${resources}`, { why: `the list does not end: ${fault}` });
    next = parsed.next;
  }
}

interface EventOptions {
  kubernetes: typeof import('@kubernetes/client-node');
  calls: ClusterCalls;
  events: EventsV1Api;
  namespace: string;
}

async function createEvent(
  { kubernetes, calls, events, namespace }: EventOptions,
  { name, uid, resourceVersion }: EventSubject,
  { type, reason, note }: ClientEvent,
  { time, once }: { time: Date; once: string | undefined },
): Promise<boolean> {
  const about = { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };
  // This function, not the API server, chooses the name of the Event, so that a retry does not create a second Event. A
  // name may have at most 253 characters.
  const eventName = `${name.slice(0, 200).replace(/[^a-z0-9]+$/, '')}.${once ?? randomBytes(8).toString('hex')}`;
  const body = {
    metadata: { name: eventName, namespace },
    eventTime: new kubernetes.V1MicroTime(time),
    regarding: { apiVersion: `${apiGroup}/${apiVersion}`, kind, name, namespace, ...about },
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
    return true;
  } catch (error) {
    // A conflict means that the Event exists already. Either the response to an earlier attempt was lost, or `once` was
    // given and an earlier run created the Event.
    if (!(error instanceof ClusterError && error.kind === 'conflict')) throw error;
    return once === undefined;
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
