// The Redis servers of a scale run: a single server, or a Cluster of three nodes.
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startTestCluster } from '../support/redis-cluster.ts';
import { measureSessions, type SessionFigures } from './sessions.ts';

export async function onServer(sessions: number): Promise<SessionFigures> {
  const redis = await startTestRedis();
  const settings = { topology: { kind: 'server', url: redis.url } } as const;
  return measureSessions({ settings, sessions, usedMemory: () => memoryOf(redis) }).finally(redis.close);
}

export async function onCluster(sessions: number): Promise<SessionFigures> {
  const nodes = await startTestCluster({ args: ['--cluster-node-timeout', '15000'] });
  try {
    const topology = { kind: 'cluster', nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })) } as const;
    const usedMemory = async () => (await Promise.all(nodes.map(memoryOf))).reduce((sum, bytes) => sum + bytes, 0);
    return await measureSessions({ settings: { topology }, sessions, usedMemory });
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}

async function memoryOf(redis: TestRedis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);
}
