// Checks that Redis responds and accepts the credentials.
import { createRawClient, watchConnection } from '../../service/redis/redis-connection.ts';
import type { RedisSettings } from '../../service/redis/redis-fields.ts';
import type { Finding } from './finding.ts';

const names = { server: 'REDIS_URL', sentinel: 'REDIS_SENTINELS', cluster: 'REDIS_CLUSTER_NODES' };

/** `timeLimit` is in milliseconds. */
export async function checkRedis(settings: RedisSettings, timeLimit: number): Promise<Finding[]> {
  const name = names[settings.topology.kind];
  const { promise, resolve } = Promise.withResolvers<Finding[]>();
  const watch = watchConnection(
    createRawClient(settings, () => undefined),
    (state) => {
      if (state === 'up') resolve([]);
      if (state === 'refused') resolve([{ severity: 'error', name, problem: 'Redis refuses the credentials' }]);
    },
  );
  const late = (): void => resolve([{ severity: 'unreachable', name, problem: 'Redis does not respond' }]);
  const timer = setTimeout(late, timeLimit);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    watch.close();
  }
}
