// Tests a Redis Cluster with a primary that is cut off from the other nodes, but not from Formgate. The primary
// responds to PING, but refuses the commands for its slots. Another node has taken over these slots.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type ScriptedCluster, startScriptedCluster } from '../../../test/support/scripted-redis-cluster.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { until } from '../../../test/support/until.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createRedis, type Redis } from './redis.ts';

let cluster: ScriptedCluster;
let redis: Redis | undefined;
beforeEach(async () => {
  cluster = await startScriptedCluster();
});
afterEach(async () => {
  redis?.close();
  await cluster.close();
});

async function connect(nodes: { host: string; port: number }[]): Promise<Redis> {
  const topology = { kind: 'cluster', nodes: nodes.map(({ host, port }) => ({ host, port })) } as const;
  const opened = createRedis({ settings: { topology }, log: captureLog().log, metrics: createMetrics() });
  redis = opened;
  await until('changes are reported', () => opened.tracked.isLive);
  return opened;
}
const put = ({ commands }: Redis, value: string) =>
  commands.set('key', value, { expiration: { type: 'PX', value: 60_000 } });

it.each([
  ['both nodes', ['primary', 'replica']],
  ['the replica', ['replica']],
] as const)(
  'commands reach the promoted node within 10 s, and no value may be cached until then: %s',
  async (_which, names) => {
    const opened = await connect(names.map((name) => cluster[name]));
    await put(opened, 'before');
    expect(await opened.tracked.reads.get('key')).toBe('before');
    let cleared = 0;
    opened.tracked.onInvalid((key) => {
      if (key === null) cleared += 1;
    });
    cluster.cutOff();
    const [untilNoticed, untilPromoted] = [startStopwatch(), startStopwatch()];
    await until('no value may be cached', () => !opened.tracked.isLive);
    expect(untilNoticed.stop()).toBeLessThan(6_000);
    expect(cleared).toBeGreaterThan(0);
    await until('the promoted node gets commands', () =>
      put(opened, 'after')
        .then(() => true)
        .catch(() => false),
    );
    await until('changes are reported', () => opened.tracked.isLive);
    expect(untilPromoted.stop()).toBeLessThan(10_000);
    expect([cluster.primary.values.get('key'), cluster.replica.values.get('key')]).toEqual(['before', 'after']);
    expect(await opened.tracked.reads.get('key')).toBe('after');
  },
);

it('a node that has lost its configuration does not replace the others', async () => {
  const opened = await connect([cluster.primary, cluster.replica]);
  cluster.cutOff('configuration');
  await until('the promoted node gets commands', () =>
    put(opened, 'after')
      .then(() => true)
      .catch(() => false),
  );
  expect(cluster.replica.values.get('key')).toBe('after');
});

it('commands fail while no other node serves the slots', async () => {
  const opened = await connect([cluster.primary]);
  cluster.cutOff();
  await until('Redis is down', async () => !(await opened.isReachable()));
  await expect(put(opened, 'x')).rejects.toMatchObject({ slug: 'unavailable' });
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect([await opened.isReachable(), opened.tracked.isLive]).toEqual([false, false]);
});

it('a Cluster whose ACL denies CLUSTER INFO is used, and is checked with PING', async () => {
  await cluster.close();
  cluster = await startScriptedCluster({ deniesInfo: true });
  const opened = await connect([cluster.primary]);
  await put(opened, 'x');
  expect(await opened.isReachable()).toBe(true);
});
