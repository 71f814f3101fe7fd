// Tests which store keeps the sessions, and how the readiness check sees it.
import { expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import type { Redis } from '../../service/redis/redis.ts';
import type { TokenHandlerConfig } from '../config.ts';
import { connectRedis, redisProblem } from './store.ts';

const none = { REDIS_SENTINELS: [], REDIS_CLUSTER_NODES: [] } as unknown as TokenHandlerConfig;
const redis = (isReachable: boolean) => ({ isReachable: async () => isReachable }) as Redis;

it('sessions are kept in memory without Redis, and the log warns that they end with the process', () => {
  const log = captureLog();
  expect(connectRedis(none, log.log, createMetrics())).toBeUndefined();
  expect(log.lines()).toMatchObject([{ level: 'warn', msg: expect.stringContaining('sessions are kept in memory') }]);
});

it('sessions are kept in Redis if it is configured, and nothing warns', () => {
  const log = captureLog();
  const connection = connectRedis({ ...none, REDIS_URL: 'redis://127.0.0.1:1' }, log.log, createMetrics());
  onTestFinished(() => connection?.close());
  expect(connection).toBeDefined();
  expect(log.text()).not.toContain('sessions are kept in memory');
});

it('a process is not ready while its Redis does not respond', async () => {
  expect(await redisProblem(redis(false))).toBe('Redis does not respond');
  expect(await redisProblem(redis(true))).toBeUndefined();
  expect(await redisProblem(undefined)).toBeUndefined();
});
