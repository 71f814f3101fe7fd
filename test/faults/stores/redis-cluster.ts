// A Redis Cluster of three primaries with a replica each. Slots with sessions move between the primaries while requests
// use them.
import { findFreePort } from '../../../dev/ports.ts';
import type { Random } from '../../adversary/random.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { startFaultProxy } from '../fault-proxy.ts';
import type { Member, RedisStore } from './redis-store.ts';

const slots = 16_384;
const primaries = 3;

export async function startRedisCluster(): Promise<RedisStore> {
  const members: Member[] = await Promise.all(Array.from({ length: 2 * primaries }, startMember));
  await form(members);
  const [first] = members as [Member];

  /** Returns each primary with its replica. `replica` is undefined if the replica is not connected. */
  const pairs = async () => {
    const roles = await Promise.all(
      members.map(async (member) => ({ member, id: await idOf(member), ...(await roleOf(member)) })),
    );
    return roles
      .filter(({ role }) => role === 'master')
      .map((primary) => ({
        primary: primary.member,
        id: primary.id,
        replica: roles.find(
          ({ role, of, isLinked }) => role === 'slave' && isLinked && of === primary.member.proxy.port,
        )?.member,
      }));
  };
  const isComplete = async () => {
    const found = await pairs();
    const infos = await Promise.all(members.map(({ server }) => server.command('CLUSTER', 'INFO')));
    const nodes = await Promise.all(members.map(({ server }) => server.command('CLUSTER', 'NODES')));
    return (
      found.length === primaries &&
      found.every(({ replica }) => replica) &&
      infos.every((info) => String(info).includes('cluster_state:ok')) &&
      nodes.every((list) => !/fail|handshake|noaddr/.test(String(list)))
    );
  };
  const pick = async (random: Random) => {
    const { primary, replica } = random.pick(await pairs());
    if (!replica) throw new Error('A primary has no replica.');
    return { primary, replica };
  };
  await until('the Cluster is complete', isComplete);

  return {
    port: first.server.port,
    env: { REDIS_CLUSTER_NODES: members.map(({ proxy }) => `127.0.0.1:${proxy.port}`).join() },
    proxies: members.map(({ proxy }) => proxy),
    faults: {
      'Redis slot migration': {
        about: 'moves the slots of all keys of one primary to another primary, one after the other',
        async run(random) {
          const [from, to] = random.shuffle(await pairs());
          if (!from || !to) throw new Error('There are fewer than two primaries.');
          await migrate(from, to, [from, to, ...(await pairs())]);
          await until('the Cluster is complete', isComplete);
        },
      },
      'Redis Cluster failover after a freeze': {
        about: 'SIGSTOP of a primary; its replica takes over; the old primary continues',
        async run(random) {
          const { primary, replica } = await pick(random);
          primary.server.pause();
          await until('the replica is primary', async () => (await roleOf(replica)).role === 'master');
          primary.server.resume();
          await until('the Cluster is complete', isComplete);
        },
      },
      'Redis Cluster failover on command': {
        about: 'CLUSTER FAILOVER, as before an upgrade of Redis',
        async run(random) {
          const { replica } = await pick(random);
          await replica.server.command('CLUSTER', 'FAILOVER');
          await until('the replica is primary', async () => (await roleOf(replica)).role === 'master');
          await until('the Cluster is complete', isComplete);
        },
      },
    },
    describe: async () => String(await first.server.command('CLUSTER', 'NODES')),
    async close() {
      await Promise.all(members.flatMap(({ server, proxy }) => [server.resume(), server.close(), proxy.close()]));
    },
  };
}

async function startMember(): Promise<Member> {
  const [port, bus] = [await findFreePort(), await findFreePort()];
  const proxy = await startFaultProxy(port);
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-node-timeout': 1_500,
    'cluster-port': bus,
    'cluster-announce-ip': '127.0.0.1',
    // Clients, replicas and migrations use the proxy. The nodes watch each other directly.
    'cluster-announce-port': proxy.port,
    'cluster-announce-bus-port': bus,
    'repl-diskless-sync-delay': 0,
    'repl-ping-replica-period': 1,
    'cluster-replica-validity-factor': 0,
  };
  const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, String(value)]);
  return { proxy, server: await startTestRedis({ port, args }) };
}

const idOf = async ({ server }: Member) => String(await server.command('CLUSTER', 'MYID'));

async function form(members: Member[]): Promise<void> {
  const [first, ...others] = members as [Member, ...Member[]];
  for (const [index, { server }] of members.slice(0, primaries).entries()) {
    const [from, to] = [index, index + 1].map((nth) => Math.floor((nth * slots) / primaries)) as [number, number];
    await server.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1));
    await server.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  }
  const { bus } = await busOf(first);
  for (const { server } of others)
    await server.command('CLUSTER', 'MEET', '127.0.0.1', String(first.proxy.port), String(bus));
  for (const [index, replica] of members.slice(primaries).entries()) {
    const id = await idOf(members[index] as Member);
    await until(
      'a replica is attached',
      async () => (await replica.server.command('CLUSTER', 'REPLICATE', id)) === 'OK',
    );
  }
}

async function busOf({ server }: Member): Promise<{ bus: number }> {
  const [, value] = (await server.command('CONFIG', 'GET', 'cluster-port')) as string[];
  return { bus: Number(value) };
}

async function roleOf({ server }: Member): Promise<{ role: string; of?: number; isLinked: boolean }> {
  const [role, , port, state] = (await server.command('ROLE')) as [string, string, number, string];
  return { role, ...(role === 'slave' && { of: Number(port) }), isLinked: state === 'connected' };
}

interface Owner {
  primary: Member;
  id: string;
}

/**
 * Moves all slots that have keys, as `redis-cli --cluster reshard` does. At the end of each move, the new owner `to`
 * gets the slot before the other nodes learn of it, so that every slot always has an owner.
 */
async function migrate(from: Owner, to: Owner, all: Owner[]): Promise<void> {
  const keys = (await from.primary.server.command('KEYS', '*')) as string[];
  const moving = new Set<string>();
  for (const key of keys) moving.add(String(await from.primary.server.command('CLUSTER', 'KEYSLOT', key)));
  for (const slot of moving) {
    await to.primary.server.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.primary.server.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    for (;;) {
      const found = (await from.primary.server.command('CLUSTER', 'GETKEYSINSLOT', slot, '10')) as string[];
      if (found.length === 0) break;
      const address = ['127.0.0.1', String(to.primary.proxy.port), '', '0', '5000', 'REPLACE', 'KEYS'];
      await from.primary.server.command('MIGRATE', ...address, ...found);
    }
    for (const { primary } of [to, from, ...all])
      await primary.server.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
  }
}
