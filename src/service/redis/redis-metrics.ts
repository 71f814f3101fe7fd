// Defines the metrics of Redis.
import prom from 'prom-client';

export interface RedisMetrics {
  /** Duration of commands in seconds. */
  commandDuration: prom.Histogram;
}

export function createRedisMetrics({ registry }: { registry: prom.Registry }): RedisMetrics {
  return {
    commandDuration: new prom.Histogram({
      name: 'formgate_redis_command_duration_seconds',
      help: 'Duration of Redis commands and scripts, including those that fail',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
      registers: [registry],
    }),
  };
}
