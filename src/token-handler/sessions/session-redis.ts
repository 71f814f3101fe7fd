// Decides where sessions are kept: in Redis, or in the memory of this process where the operator says so.
import { ConfigError } from '../../service/operations/config.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { createRedis, type Redis } from '../../service/redis/redis.ts';
import { redisSettings } from '../../service/redis/redis-fields.ts';
import type { TokenHandlerConfig } from '../config.ts';

/** Undefined if sessions are kept in memory. Throws ConfigError if the configuration does not decide. */
export function connectRedis(config: TokenHandlerConfig, log: Logger, metrics: Metrics): Redis | undefined {
  const settings = redisSettings(config);
  if (settings && config.SESSION_STORE === 'memory')
    throw new ConfigError([{ name: 'SESSION_STORE', problem: 'is memory, but a Redis is configured' }]);
  if (settings) return createRedis({ settings, log, metrics });
  if (config.SESSION_STORE === 'redis')
    throw new ConfigError([{ name: 'REDIS_URL', problem: 'is required, unless SESSION_STORE is memory' }]);
  log.warn('sessions are kept in the memory of this process: they end with it, and no other replica knows them');
  return undefined;
}

/** Why sessions cannot be read; undefined if they can. */
export async function redisProblem(redis: Redis | undefined): Promise<string | undefined> {
  return redis && !(await redis.isReachable()) ? 'Redis does not answer' : undefined;
}
