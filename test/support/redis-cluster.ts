// Starts a Redis Cluster without replicas on free ports.
import { findFreePort } from '../../dev/ports.ts';
import { startTestRedis, type TestRedis } from './redis.ts';
import { until } from './until.ts';

const slots = 16_384;

interface Node {
  redis: TestRedis;
  /** The node's port for the cluster bus, over which the nodes watch each other. */
  bus: number;
}

/**
 * Starts a cluster, and resolves when every node knows that all slots are served. `args` are settings of redis.conf, as
 * arguments.
 */
export async function startTestCluster({ nodes: count = 3, args = [] as string[] } = {}): Promise<TestRedis[]> {
  const nodes: Node[] = [];
  try {
    for (let index = 0; index < count; index += 1) nodes.push(await startNode(args));
    await join(nodes);
  } catch (error) {
    await Promise.all(nodes.map(({ redis }) => redis.close()));
    throw error;
  }
  return nodes.map(({ redis }) => redis);
}

// By default, the cluster bus uses the port of the node plus 10,000, but another process may use that port.
async function startNode(args: string[]): Promise<Node> {
  const bus = await findFreePort();
  const redis = await startTestRedis({ args: ['--cluster-enabled', 'yes', '--cluster-port', String(bus), ...args] });
  return { redis, bus };
}

async function join(nodes: Node[]): Promise<void> {
  for (const [index, { redis }] of nodes.entries()) {
    const [from, to] = [index, index + 1].map((nth) => Math.floor((nth * slots) / nodes.length)) as [number, number];
    await redis.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1));
    await redis.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  }
  const [first] = nodes;
  for (const { redis, bus } of nodes.slice(1))
    await first?.redis.command('CLUSTER', 'MEET', '127.0.0.1', String(redis.port), String(bus));
  const isComplete = async ({ redis }: Node) => {
    const info = String(await redis.command('CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${nodes.length}`);
  };
  for (const node of nodes) await until('the Cluster is complete', () => isComplete(node));
}
