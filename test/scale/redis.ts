// The Redis servers of a scale run: a single one, or a Cluster of three nodes.
import { setTimeout as delay } from 'node:timers/promises';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { measureSessions, type SessionFigures } from './sessions.ts';

export async function onServer(sessions: number): Promise<SessionFigures> {
  const redis = await startTestRedis();
  const settings = { topology: { kind: 'server', url: redis.url } } as const;
  return measureSessions({ settings, sessions, usedMemory: () => memoryOf(redis) }).finally(redis.close);
}

const slots = 16_384;

export async function onCluster(sessions: number): Promise<SessionFigures> {
  const nodes: TestRedis[] = [];
  try {
    for (let index = 0; index < 3; index += 1)
      nodes.push(await startTestRedis({ args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '15000'] }));
    await join(nodes);
    const topology = { kind: 'cluster', nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })) } as const;
    const usedMemory = async () => (await Promise.all(nodes.map(memoryOf))).reduce((sum, bytes) => sum + bytes, 0);
    return await measureSessions({ settings: { topology }, sessions, usedMemory });
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}

async function join(nodes: TestRedis[]): Promise<void> {
  for (const [index, node] of nodes.entries()) {
    const [from, to] = [index, index + 1].map((part) => Math.floor((part * slots) / nodes.length)) as [number, number];
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1));
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  }
  for (const node of nodes.slice(1)) await nodes[0]?.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port));
  for (const node of nodes)
    while (!String(await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok')) await delay(100);
}

async function memoryOf(redis: TestRedis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))?.[1]);
}
