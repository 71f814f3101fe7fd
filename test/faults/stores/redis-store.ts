// Redis in one of the topologies that the token handler supports: one server, a group behind Sentinels, or a Cluster.
// The token handler, the servers and the Sentinels reach each server through that server's own proxy.

import type { Random } from '../../adversary/random.ts';
import type { TestRedis } from '../../support/redis.ts';
import type { FaultProxy } from '../fault-proxy.ts';

export interface RedisStore {
  /** Port of one of the servers itself, not of its proxy. */
  port: number;
  /** Environment variables with which the token handler finds the store. */
  env: Record<string, string>;
  /** The proxy of each server. */
  proxies: FaultProxy[];
  /** Faults of the store itself, keyed by name. Each resolves when the store is complete again. */
  faults: Record<string, { about: string; run(random: Random): Promise<void> }>;
  /** Describes the state of the store, for messages about a failed fault. */
  describe(): Promise<string>;
  close(): Promise<void>;
}

/** A server and the proxy in front of it. The servers of a group know each other by the ports of their proxies. */
export interface Member {
  server: TestRedis;
  proxy: FaultProxy;
}
