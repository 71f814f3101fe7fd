// Connects to a Redis Cluster. A node that has lost contact with the cluster still responds to PING, but refuses every
// command for its slots (CLUSTERDOWN). Another node may have taken over these slots. node-redis discovers the nodes
// again only after MOVED and ASK. This client therefore asks each node for the state of the cluster. If one of the
// nodes is cut off, the client discovers the cluster again through another node.
import { type createCluster, ErrorReply } from '@redis/client';
import { within } from '../time-limit.ts';
import type { RedisNode } from './redis-fields.ts';
import type { ClientKind, RawClient } from './redis-server-client.ts';

type Cluster = ReturnType<typeof createCluster>;
type NodeClient = Awaited<ReturnType<Cluster['nodeClient']>>;

export interface ClusterClientOptions {
  /** The configured nodes. The client asks them for the other nodes of the cluster. */
  nodes: RedisNode[];
  /** Creates a client that discovers the cluster from `nodes`. */
  create(nodes: RedisNode[]): Cluster;
}

/** Minimum milliseconds between two discoveries. */
const discoveryPause = 1_000;
/**
 * Maximum milliseconds of a discovery. node-redis needs at most 5 s to ask one node for the list of nodes. It then
 * waits until all nodes in the list are reachable.
 */
const longestDiscovery = 6_000;

export function createClusterClient({ nodes, create }: ClusterClientOptions): ClientKind {
  const listeners: ((error: unknown) => void)[] = [];
  let isClosed = false;
  let discovered = Number.NEGATIVE_INFINITY;
  let discovery: Promise<void> | undefined;
  let next: Cluster | undefined;
  let turn = 0;
  let cluster = open(nodes);

  function open(roots: RedisNode[]): Cluster {
    const opened = create(roots);
    const report = (error: unknown) => {
      for (const listener of listeners) listener(error);
    };
    // `error` is a failed discovery, and `node-error` the failure of a connection to a node.
    opened.on('error', report).on('node-error', report);
    return opened;
  }

  /**
   * Replaces the client by a new one, which discovers the cluster through a single node. Each discovery asks the next
   * node, because a node that is cut off reports an outdated list of nodes.
   */
  async function discover(): Promise<void> {
    const known = [...nodes, ...cluster.masters.map(({ host, port }) => ({ host, port }))];
    const asked = turn % known.length;
    turn += 1;
    next = open(known.slice(asked, asked + 1));
    try {
      await within(next.connect(), longestDiscovery, new Error('the Redis Cluster was not discovered in time'));
      // A node that has lost its configuration knows no primaries, so its list of nodes is ignored.
      if (!isClosed && next.masters.length > 0) [cluster, next] = [next, cluster];
    } catch {
      // Ignored, because the next discovery asks another node. node-redis reports failed connections as `error` events.
    }
    next.destroy();
  }

  const client: RawClient = {
    get: (key) => cluster.get(key),
    hGetAll: (key) => cluster.hGetAll(key),
    set: (key, value, options) => cluster.set(key, value, options),
    del: (keys) => cluster.del(keys),
    eval: (script, options) => cluster.eval(script, options),
    evalSha: (sha1, options) => cluster.evalSha(sha1, options),
    connect: () => cluster.connect(),
    destroy() {
      isClosed = true;
      cluster.destroy();
      next?.destroy();
    },
    on: (_event, listener) => listeners.push(listener),
  };
  return {
    client,
    send: (args) => cluster.sendCommand(undefined, false, args),
    /** Checks every primary. Throws if a primary does not respond, or does not serve its slots. */
    async ping(): Promise<void> {
      await discovery;
      const asked = cluster;
      try {
        if (asked.masters.length === 0) throw new CutOff('the Redis Cluster has no primary');
        await Promise.all(asked.masters.map(async (node) => checkNode(await asked.nodeClient(node), node.address)));
      } catch (error) {
        if (error instanceof CutOff && !isClosed && performance.now() - discovered >= discoveryPause) {
          discovered = performance.now();
          discovery = discover();
        }
        throw error;
      }
    },
  };
}

class CutOff extends Error {
  override name = 'CutOff';
}

async function checkNode(client: NodeClient, address: string): Promise<void> {
  let info: unknown;
  try {
    info = await client.sendCommand(['CLUSTER', 'INFO']);
  } catch (error) {
    // An ACL may deny the command.
    if (!(error instanceof ErrorReply && error.message.startsWith('NOPERM'))) throw error;
    await client.ping();
    return;
  }
  if (/^cluster_state:(?!ok\b)/m.test(String(info)))
    throw new CutOff(`the Redis Cluster is down according to its node ${address}`);
}
