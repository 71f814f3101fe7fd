// The Redis topologies. Each test run uses one of them and a Postgres pair.
import { startRedisCluster } from './stores/redis-cluster.ts';
import { startRedisSentinel } from './stores/redis-sentinel.ts';
import { startRedisSingle } from './stores/redis-single.ts';

export const topologies = {
  single: { about: 'one Redis that stores each change', start: startRedisSingle },
  sentinel: { about: 'a Redis primary, two replicas and three Sentinels', start: startRedisSentinel },
  cluster: { about: 'a Redis Cluster of three primaries with a replica each', start: startRedisCluster },
};

export type TopologyName = keyof typeof topologies;

export const topologyNames = Object.keys(topologies) as TopologyName[];
