// One Redis that writes each change to disk, and is restarted with its data after a crash.
import { setTimeout as delay } from 'node:timers/promises';
import { startRestartingRedis } from '../../adversary/world/redis.ts';
import { startFaultProxy } from '../fault-proxy.ts';
import type { RedisStore } from './redis-store.ts';

export async function startRedisSingle(): Promise<RedisStore> {
  const redis = await startRestartingRedis({ appendfsync: 'always' });
  const proxy = await startFaultProxy(redis.port);
  return {
    port: redis.port,
    env: { REDIS_URL: `redis://127.0.0.1:${proxy.port}` },
    proxies: [proxy],
    faults: {
      'Redis crash': {
        about: 'SIGKILL of Redis, which is restarted with its data half a second later',
        async run() {
          redis.kill();
          await delay(600);
          await redis.untilListening();
        },
      },
    },
    describe: async () => 'one server',
    async close() {
      await Promise.all([proxy.close(), redis.close()]);
    },
  };
}
