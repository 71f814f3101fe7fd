// A primary with two replicas, watched by three Sentinels. The primary accepts writes only while a replica acknowledges
// them (min-replicas-to-write). Therefore, an isolated primary stops accepting writes that a failover would discard.

import { findFreePort } from '../../../dev/ports.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { startFaultProxy } from '../fault-proxy.ts';
import type { Member, RedisStore } from './redis-store.ts';

const name = 'sessions';

export async function startRedisSentinel(): Promise<RedisStore> {
  const members: Member[] = [];
  for (let index = 0; index < 3; index += 1) members.push(await startMember(members[0]?.proxy.port));
  const [first] = members as [Member];
  const sentinels = await Promise.all([0, 1, 2].map(() => startTestRedis({ mode: 'sentinel' })));
  for (const sentinel of sentinels) await monitor(sentinel, first.proxy.port);
  const [sentinel] = sentinels as [TestRedis];

  const primaryPort = async () =>
    Number(((await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as string[])[1]);
  const primary = async () => {
    const port = await primaryPort();
    const member = members.find(({ proxy }) => proxy.port === port);
    if (!member) throw new Error(`The Sentinels name the port ${port}.`);
    return member;
  };
  const isComplete = async () => {
    const states = await Promise.all(sentinels.map((each) => each.command('SENTINEL', 'MASTER', name)));
    const facts = states.map((state) => asObject(state as string[]));
    const port = await primaryPort();
    const agree = facts.every(
      (state) =>
        Number(state.port) === port &&
        state.flags === 'master' &&
        state['num-slaves'] === '2' &&
        state['num-other-sentinels'] === '2',
    );
    const { server } = await primary();
    return agree && /connected_slaves:2/.test(String(await server.command('INFO', 'replication')));
  };
  /**
   * Runs the fault, waits for another primary, repairs what the fault broke, and waits until all servers are connected.
   */
  const failOver = async (begin: (old: Member) => unknown, repair: (old: Member) => unknown = () => undefined) => {
    const old = await primary();
    await begin(old);
    await until('another primary', async () => (await primary()) !== old);
    await repair(old);
    await until('two replicas', isComplete);
  };
  await until('the Sentinels know each other', isComplete);

  return {
    port: first.server.port,
    env: {
      REDIS_SENTINELS: sentinels.map(({ port }) => `127.0.0.1:${port}`).join(),
      REDIS_SENTINEL_NAME: name,
    },
    proxies: members.map(({ proxy }) => proxy),
    faults: {
      'Redis failover after a crash': {
        about:
          'SIGKILL of the Redis primary; the Sentinels promote a replica; the old primary returns as an empty replica',
        run: () =>
          failOver(
            ({ server }) => server.close(),
            async (old) => {
              const args = replicaArgs(old.proxy.port, await primaryPort());
              old.server = await startTestRedis({ port: old.server.port, args });
            },
          ),
      },
      'Redis failover after a freeze': {
        about: 'SIGSTOP of the Redis primary; the Sentinels promote a replica; the old primary continues',
        run: () =>
          failOver(
            ({ server }) => server.pause(),
            ({ server }) => server.resume(),
          ),
      },
      'Redis failover after a partition': {
        about: 'the Redis primary is cut off from replicas, Sentinels and clients, and later reachable again',
        run: () =>
          failOver(
            ({ proxy }) => proxy.set({ lost: 'both' }),
            ({ proxy }) => proxy.heal(),
          ),
      },
    },
    describe: async () => String(await sentinel.command('SENTINEL', 'MASTER', name)),
    async close() {
      await Promise.all(sentinels.map((each) => each.close()));
      await Promise.all(members.flatMap(({ server, proxy }) => [server.resume(), server.close(), proxy.close()]));
    },
  };
}

async function startMember(primaryPort: number | undefined): Promise<Member> {
  const port = await findFreePort();
  const proxy = await startFaultProxy(port);
  return { proxy, server: await startTestRedis({ port, args: replicaArgs(proxy.port, primaryPort) }) };
}

function replicaArgs(announced: number, primaryPort: number | undefined): string[] {
  const settings: Record<string, string | number> = {
    'replica-announce-ip': '127.0.0.1',
    'replica-announce-port': announced,
    'min-replicas-to-write': 1,
    'min-replicas-max-lag': 2,
    'repl-ping-replica-period': 1,
    'repl-timeout': 4,
    'repl-diskless-sync-delay': 0,
  };
  const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, String(value)]);
  return primaryPort === undefined ? args : [...args, '--replicaof', '127.0.0.1', String(primaryPort)];
}

async function monitor(sentinel: TestRedis, port: number): Promise<void> {
  await sentinel.command('SENTINEL', 'MONITOR', name, '127.0.0.1', String(port), '2');
  const settings = { 'down-after-milliseconds': 1_500, 'failover-timeout': 5_000, 'parallel-syncs': 2 };
  for (const [key, value] of Object.entries(settings))
    await sentinel.command('SENTINEL', 'SET', name, key, String(value));
}

/** Converts a list in which names and values alternate, as Redis returns it, to an object. */
function asObject(list: string[]): Record<string, string> {
  return Object.fromEntries(list.flatMap((key, index) => (index % 2 === 0 ? [[key, list[index + 1] ?? '']] : [])));
}
