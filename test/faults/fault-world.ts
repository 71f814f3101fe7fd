// The test world of test/adversary (all services and their dependencies), with a fault proxy on every connection and a
// Redis of the chosen topology.
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '../adversary/random.ts';
import { startWorld, type Wiring, type World } from '../adversary/world/world.ts';
import { spawnReconciler } from '../support/reconciler.ts';
import { type Effects, startEffects } from './effects.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { type LinkName, networkFaults } from './faults.ts';
import type { Step } from './schedule.ts';
import type { RedisStore } from './stores/redis-store.ts';
import { type TopologyName, topologies } from './topologies.ts';

export interface FaultWorldOptions extends Pick<Wiring, 'name' | 'env' | 'demoTokenLifetime'> {
  /** `failOver` is absent if the fault `Postgres failover` is not used. */
  postgres: { url: string; failOver?(): Promise<void> };
  topology: TopologyName;
}

export interface FaultWorld {
  world: World;
  store: RedisStore;
  effects: Effects;
  /** Causes the fault, and resolves when it is over. */
  inject(step: Step): Promise<void>;
  close(): Promise<void>;
}

export const failover = 'Postgres failover';

export async function startFaultWorld({ postgres, topology, ...rest }: FaultWorldOptions): Promise<FaultWorld> {
  const store = await topologies[topology].start();
  const proxies: Record<LinkName, FaultProxy[]> = {
    ...{ Postgres: [], Redis: store.proxies, 'identity provider': [] },
    ...{ 'mail server': [], 'platform services': [], upstream: [] },
  };
  let effects: Effects | undefined;
  const world = await startWorld(postgres.url, {
    ...rest,
    startRedis: async () => ({ port: store.port, env: store.env, close: store.close }),
    async reach(link, port) {
      if (link === 'upstream') effects = await startEffects(port);
      const proxy = await startFaultProxy(link === 'upstream' && effects ? effects.port : port);
      proxies[link.endsWith(' database') ? 'Postgres' : (link as LinkName)].push(proxy);
      return proxy.port;
    },
  });
  if (!effects) throw new Error('The world has no upstream.');
  const counting = effects;

  async function inject({ name, network, milliseconds, seed }: Step): Promise<void> {
    const random = createRandom(seed);
    if (name === failover) return postgres.failOver?.();
    if (!network) {
      const describe = async (cause: unknown) => {
        throw new Error(`${name} failed: ${await store.describe()}`, { cause });
      };
      return store.faults[name]?.run(random).catch(describe);
    }
    const affected = proxies[network.link];
    const fault = networkFaults.find((each) => each.name === network.fault);
    await fault?.run(affected, milliseconds, random);
    await Promise.all(affected.map((proxy) => proxy.heal()));
  }

  return {
    ...{ world, store, effects: counting, inject },
    async close() {
      await world.close();
      await Promise.all([
        counting.close(),
        ...Object.values(proxies).flatMap((list) => list.map((proxy) => proxy.close())),
      ]);
    },
  };
}

/** Runs the reconciler repeatedly, like a CronJob. Before each run, waits `pause` milliseconds and calls `before`. */
export async function keepReconciling(
  env: Record<string, string>,
  { signal, pause = 4_000, before }: { signal: AbortSignal; pause?: number; before?(): Promise<unknown> },
): Promise<void> {
  while (!signal.aborted) {
    await delay(pause, undefined, { signal }).catch(() => undefined);
    await before?.();
    const { kill, ended } = spawnReconciler({ ...env, LEASE_DURATION: 'PT10S' });
    const patience = setTimeout(() => kill('SIGKILL'), 30_000);
    await ended;
    clearTimeout(patience);
  }
}
