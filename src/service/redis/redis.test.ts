// Tests the connection to Redis: during outages and restarts, without tracking, behind Sentinel, as a Cluster, with TLS
// and with ACLs.

import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { findFreePort } from '../../../dev/ports.ts';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createCertificate } from '../../../test/support/certificate.ts';
import { listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { startTestRedis, type TestRedis, type TestRedisOptions } from '../../../test/support/redis.ts';
import { startTestCluster } from '../../../test/support/redis-cluster.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { startTcpGate } from '../../../test/support/tcp-gate.ts';
import { until as untilTrue } from '../../../test/support/until.ts';
import { ConfigError, parseConfig } from '../operations/config.ts';
import { createMetrics } from '../operations/metrics.ts';
import { withRules } from '../operations/settings-rules.ts';
import { createRedis, type Redis } from './redis.ts';
import { type RedisSettings, redisFields, redisRules, redisSettings } from './redis-fields.ts';
import { defineScript } from './redis-script.ts';

let servers: TestRedis[];
let clients: Redis[];
let log: CapturedLog;
beforeEach(() => {
  servers = [];
  clients = [];
  log = captureLog();
});
afterEach(async () => {
  for (const client of clients) client.close();
  await Promise.all(servers.map((server) => server.close()));
});

async function serve(options: TestRedisOptions = {}): Promise<TestRedis> {
  const server = await startTestRedis(options);
  servers.push(server);
  return server;
}
function connect(settings: RedisSettings, metrics = createMetrics()): Redis {
  const redis = createRedis({ settings, log: log.log, metrics });
  clients.push(redis);
  return redis;
}
const byUrl = ({ url }: TestRedis): RedisSettings => ({ topology: { kind: 'server', url } });
const until = (holds: () => boolean | Promise<boolean>) => untilTrue(`${holds}`, holds, { interval: 10 });
const put = (redis: Redis, key: string, value: string) =>
  redis.commands.set(key, value, { expiration: { type: 'PX', value: 60_000 } });
const addOne = defineScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");

/** Uses every feature of a connection to Redis, once the connection is ready. */
async function exercise(redis: Redis): Promise<void> {
  await until(async () => redis.tracked.isLive && (await redis.isReachable()));
  const told: (string | null)[] = [];
  const stop = redis.tracked.onInvalid((key) => told.push(key));
  for (const key of ['{a}', '{b}:x', '{c}']) {
    await put(redis, key, '1');
    expect(await redis.tracked.reads.get(key)).toBe('1');
    expect(await redis.run(addOne, [key], [2])).toBe(3);
    expect(await redis.run(addOne, [key], [2])).toBe(5);
    await until(() => told.includes(key));
    expect(await redis.tracked.reads.get(key)).toBe('5');
    await redis.commands.del([key]);
    expect(await redis.commands.get(key)).toBeNull();
  }
  expect(await redis.tracked.reads.hGetAll('{none}')).toEqual({});
  stop();
}

/** Starts a TCP proxy that delays everything that Redis sends. Returns the settings with the proxy's port. */
async function delayed({ port }: TestRedis, milliseconds: number): Promise<RedisSettings> {
  const proxy = createServer((incoming) => {
    const outgoing = connectTo(port, '127.0.0.1');
    incoming.pipe(outgoing);
    outgoing.on('data', (chunk) => setTimeout(() => incoming.write(chunk), milliseconds));
    for (const socket of [incoming, outgoing]) socket.on('error', () => undefined);
    incoming.once('close', () => outgoing.destroy());
  });
  onTestFinished(() => void proxy.close());
  return { topology: { kind: 'server', url: `redis://127.0.0.1:${await listenOnLoopback(proxy)}` } };
}

describe('one server', () => {
  it('serves commands, scripts and tracked reads with their changes', async () => {
    await exercise(connect(byUrl(await serve())));
  });

  it('accepts an ACL user and a password', async () => {
    const server = await serve({ password: 'the default password' });
    await server.command('ACL', 'SETUSER', 'handler', 'on', '>its password', '~*', '+@all');
    await exercise(connect({ ...byUrl(server), username: 'handler', password: 'its password' }));
    expect(JSON.stringify(log.lines())).not.toContain('its password');
  });

  it.each([
    ['of a user', { username: 'handler' }],
    ['of the server', {}],
  ])('that refuses the password %s is logged once as that, and once when it is accepted', async (_whose, user) => {
    const server = await serve({ password: 'the default password' });
    const redis = connect({ ...byUrl(server), ...user, password: 'a later password' });
    const said = () => log.lines().map(({ level, msg, dependency }) => [level, msg, dependency]);
    const refused = ['error', 'Redis refuses the credentials', 'redis'];
    await until(() => said().length > 0);
    // Gives the client time for several attempts to connect.
    await delay(600);
    expect([said(), await redis.isReachable()]).toEqual([[refused], false]);
    await server.command('CONFIG', 'SET', 'requirepass', 'a later password');
    await server.command('ACL', 'SETUSER', 'handler', 'on', '>a later password', '~*', '+@all');
    await until(() => said().length > 1);
    expect(said()[1]).toEqual(['info', 'Redis is reachable again', 'redis']);
    expect(log.text()).not.toMatch(/a later password|the default password/);
  });

  it('that is cut off silently is noticed within 4 s, and cached values are no longer trusted', async () => {
    const server = await serve();
    const redis = connect(byUrl(server));
    await exercise(redis);
    const told: (string | null)[] = [];
    redis.tracked.onInvalid((key) => told.push(key));
    server.pause();
    const stopwatch = startStopwatch();
    // Unanswered commands must not make the connection appear alive.
    const traffic = setInterval(() => redis.tracked.reads.get('x').catch(() => undefined), 50);
    await until(() => !redis.tracked.isLive && told.includes(null));
    clearInterval(traffic);
    // The machine may be busy, so this limit and the next are longer than those of the titles.
    expect(stopwatch.stop()).toBeLessThan(6_000);
    await expect(redis.commands.get('a')).rejects.toMatchObject({ slug: 'unavailable', status: 503 });
    server.resume();
    await exercise(redis);
  });

  it('that takes 1.6 s for each response confirms often enough that cached values are current', async () => {
    const redis = connect(await delayed(await serve(), 1_600));
    await until(() => redis.tracked.isLive);
    const ages: number[] = [];
    const began = performance.now();
    while (performance.now() - began < 7_000) {
      await delay(50);
      ages.push(performance.now() - redis.tracked.toldUntil);
    }
    // Open streams end when nothing was confirmed for 3.5 s.
    expect(Math.max(...ages)).toBeLessThan(3_500);
    expect(redis.tracked.isLive).toBe(true);
  });

  it('completes a command within 3 s, with 503 and Retry-After if Redis is down', async () => {
    const server = await serve();
    const redis = connect(byUrl(server));
    await exercise(redis);
    server.pause();
    const stopwatch = startStopwatch();
    const failure = await redis.commands.get('a').catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
    expect(stopwatch.stop()).toBeLessThan(5_000);
    server.resume();
  });

  it('may start later than the process, which is logged once', async () => {
    const port = await findFreePort();
    const redis = connect({ topology: { kind: 'server', url: `redis://127.0.0.1:${port}` } });
    await until(() => log.lines().length > 0);
    // Gives the client time for several attempts to connect.
    await delay(300);
    await expect(redis.commands.get('a')).rejects.toMatchObject({ status: 503 });
    const said = () => log.lines();
    expect(said()).toMatchObject([{ level: 'error', msg: 'Redis is unreachable', err: { code: 'ECONNREFUSED' } }]);
    await serve({ port });
    await exercise(redis);
    expect(said().map(({ msg }) => msg)).toEqual(['Redis is unreachable', 'Redis is reachable again']);
  });

  it('that stops is logged with the error of the connection and its address, without the password', async () => {
    const server = await serve({ password: 'its password' });
    const gate = await startTcpGate(server.port);
    onTestFinished(() => gate.close());
    const redis = connect({
      topology: { kind: 'server', url: `redis://127.0.0.1:${gate.port}` },
      password: 'its password',
    });
    // An outage that a ping notices before the first attempt to reconnect is logged as a closed connection.
    await until(async () => {
      await gate.open();
      await until(() => redis.isReachable());
      await gate.shut();
      await until(async () => !(await redis.isReachable()));
      return log.text().includes(`connect ECONNREFUSED 127.0.0.1:${gate.port}`);
    });
    expect(log.text()).not.toContain('its password');
  });

  it('is reported in one line when it goes down and one when it is back, and in metrics', async () => {
    const server = await serve();
    const metrics = createMetrics();
    const redis = connect(byUrl(server), metrics);
    await exercise(redis);
    const isUp = async () => (await metrics.dependencyUp.get()).values.map(({ labels, value }) => [labels, value]);
    expect(await isUp()).toEqual([[{ dependency: 'redis' }, 1]]);
    const before = log.lines().length;
    server.pause();
    await until(async () => !(await redis.isReachable()));
    expect(await isUp()).toEqual([[{ dependency: 'redis' }, 0]]);
    // Gives both connections time to notice the outage.
    await delay(1_500);
    server.resume();
    await exercise(redis);
    const said = log.lines().slice(before);
    expect(said.map(({ msg }) => msg)).toEqual(['Redis is unreachable', 'Redis is reachable again']);
    expect(await isUp()).toEqual([[{ dependency: 'redis' }, 1]]);
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/^formgate_redis_command_duration_seconds_count [1-9]/m);
  });

  it('that loses only its tracked reads is reported once', async () => {
    const server = await serve();
    const redis = connect(byUrl(server));
    await exercise(redis);
    const before = log.lines().length;
    // The connection with RESP3 serves tracked reads. Without permission for CLIENT TRACKING, it cannot be restored.
    const list = String(await server.command('CLIENT', 'LIST'));
    const tracked = list.split('\n').find((line) => line.includes('resp=3')) ?? '';
    await server.command('ACL', 'SETUSER', 'default', '-client|tracking');
    await server.command('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(tracked)?.[1] ?? '');
    await until(() => log.lines().length > before);
    await delay(1_000);
    const said = log.lines().slice(before);
    expect(said).toMatchObject([{ level: 'warn', msg: expect.stringContaining('reports no changes of sessions') }]);
    expect([await redis.isReachable(), redis.tracked.isLive]).toEqual([true, false]);
  });

  it('is used again after a restart, with its scripts', async () => {
    const first = await startTestRedis();
    const redis = connect(byUrl(first));
    await exercise(redis);
    await first.close();
    await until(() => !redis.tracked.isLive);
    await serve({ port: first.port });
    await exercise(redis);
  });

  it.each([
    [
      'whose ACL denies CLIENT TRACKING',
      { args: ['--user', 'default', 'on', 'nopass', '~*', '+@all', '-client|tracking'] },
    ],
    ['that does not know HELLO, as before Redis 6', { args: ['--rename-command', 'HELLO', ''] }],
  ])('%s serves reads that may not be cached', async (_what, options) => {
    const redis = connect(byUrl(await serve(options)));
    await until(() => redis.isReachable());
    await put(redis, 'a', '1');
    await until(() => log.text().includes('no client tracking'));
    expect(redis.tracked.isLive).toBe(false);
    expect(await redis.tracked.reads.get('a')).toBe('1');
  });

  it('reports an error in a command or script as a defect, not as an outage', async () => {
    const redis = connect(byUrl(await serve()));
    await until(() => redis.isReachable());
    await redis.run(defineScript("return redis.call('HSET', KEYS[1], 'a', '1')"), ['hash'], []);
    await expect(redis.commands.get('hash')).rejects.not.toHaveProperty('slug');
    const inScript = redis.run(defineScript("return redis.call('GET', KEYS[1])"), ['hash'], []);
    await expect(inScript).rejects.not.toHaveProperty('slug');
  });

  it('that refuses writes for now is unavailable to scripts too', async () => {
    const server = await serve();
    const redis = connect(byUrl(server));
    await until(() => redis.isReachable());
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    await expect(redis.run(addOne, ['a'], [1])).rejects.toMatchObject({ slug: 'unavailable', status: 503 });
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(await redis.run(addOne, ['a'], [1])).toBe(1);
  });

  it.each([
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    'NOREPLICAS Not enough good replicas to write.',
    'MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.',
  ])('of version 6 that refuses writes for now is unavailable to scripts too: %s', async (reason) => {
    const redis = connect(byUrl(await serve()));
    await until(() => redis.isReachable());
    // The error text of Redis 6.2.14.
    const text = `ERR Error running script (call to f_ae34): @user_script:1: @user_script: 1: -${reason} `;
    const script = defineScript('return redis.error_reply(ARGV[1])');
    await expect(redis.run(script, ['a'], [text])).rejects.toMatchObject({ slug: 'unavailable', status: 503 });
  });

  it('that has become a replica is left for the new primary behind the same address', async () => {
    const former = await serve();
    const gate = await startTcpGate(former.port);
    onTestFinished(() => gate.close());
    const redis = connect({ topology: { kind: 'server', url: `redis://127.0.0.1:${gate.port}` } });
    await exercise(redis);
    const primary = await serve();
    await former.command('REPLICAOF', '127.0.0.1', String(primary.port));
    // Open connections stay at the former primary. Only new connections lead to the new one.
    await gate.open(primary.port);
    await until(() =>
      put(redis, 'after', '1').then(
        () => true,
        () => false,
      ),
    );
    await exercise(redis);
    expect(await primary.command('GET', 'after')).toBe('1');
    expect(log.lines()).toContainEqual(
      expect.objectContaining({
        msg: 'Redis is unreachable',
        err: expect.objectContaining({ message: expect.stringContaining('replica') }),
      }),
    );
  });

  it('is used with PING alone if its ACL denies INFO', async () => {
    const server = await serve({ args: ['--user', 'default', 'on', 'nopass', '~*', '+@all', '-info'] });
    await exercise(connect(byUrl(server)));
    await delay(1_500);
    // The log counts denied commands. Each of the two connections has asked once.
    expect(String(await server.command('ACL', 'LOG'))).toMatch(/^count,2,reason,command,context,toplevel,object,info,/);
    expect(log.lines().map(({ msg }) => msg)).toEqual(['Redis is reachable']);
  });

  it('is reached by TLS with a private certificate authority', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'formgate-tls-'));
    const { keyFile, certificateFile, certificate } = createCertificate(folder);
    const tlsPort = await findFreePort();
    const tls = ['--tls-port', String(tlsPort), '--tls-cert-file', certificateFile, '--tls-key-file', keyFile];
    await serve({ args: [...tls, '--tls-ca-cert-file', certificateFile, '--tls-auth-clients', 'no'] });
    const topology = { kind: 'server', url: `rediss://127.0.0.1:${tlsPort}` } as const;
    const metrics = createMetrics();
    await exercise(connect({ topology, tls: { ca: certificate } }, metrics));
    const [, expiry] = /certificate="redis"\} (\d+)/.exec(await metrics.registry.metrics()) ?? [];
    expect(Number(expiry) - Date.now() / 1_000).toBeGreaterThan(80_000);
    const distrusting = connect({ topology, tls: {} });
    await delay(500);
    expect(await distrusting.isReachable()).toBe(false);
    await rm(folder, { recursive: true, force: true });
  });
});

describe('behind Sentinel', () => {
  it('the primary is found, and the new primary after a failover', async () => {
    const primary = await serve();
    const replica = await serve({ args: ['--replicaof', '127.0.0.1', String(primary.port)] });
    await until(async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up'));
    const sentinel = await serve({ mode: 'sentinel' });
    await sentinel.command('SENTINEL', 'MONITOR', 'main', '127.0.0.1', String(primary.port), '1');
    await sentinel.command('SENTINEL', 'SET', 'main', 'down-after-milliseconds', '1000');
    await until(async () =>
      String(await sentinel.command('SENTINEL', 'REPLICAS', 'main')).includes(String(replica.port)),
    );
    const nodes = [{ host: '127.0.0.1', port: sentinel.port }];
    const redis = connect({ topology: { kind: 'sentinel', name: 'main', nodes } });
    await exercise(redis);
    await sentinel.command('SENTINEL', 'FAILOVER', 'main');
    await until(async () => String(await replica.command('ROLE')).startsWith('master'));
    // Waits until the former primary is a replica. Until then, it accepts writes that are lost later.
    await until(async () => /^slave/.test(String(await primary.command('ROLE').catch(() => ''))));
    await until(() =>
      put(redis, 'after', '1').then(
        () => true,
        () => false,
      ),
    );
    await exercise(redis);
    expect(await replica.command('GET', 'after')).toBe('1');
  });
});

describe('a Cluster', () => {
  it('is served on every node', async () => {
    const nodes = await startTestCluster();
    servers.push(...nodes);
    const topology = { kind: 'cluster', nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })) } as const;
    await exercise(connect({ topology }));
  });

  it('whose nodes stop is logged with the error of a connection', async () => {
    const nodes = await startTestCluster();
    const topology = { kind: 'cluster', nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })) } as const;
    const redis = connect({ topology });
    await until(() => redis.isReachable());
    await Promise.all(nodes.map((node) => node.close()));
    await until(() => log.text().includes('Redis is unreachable'));
    const line = log.lines().find(({ msg }) => msg === 'Redis is unreachable');
    expect(JSON.stringify(line)).toMatch(/ECONNREFUSED|Socket closed/);
  });
});

describe('the configuration', () => {
  const settings = (env: Record<string, string>) =>
    redisSettings(parseConfig(withRules(z.object(redisFields), ...redisRules), env));

  it('names one server, a group behind Sentinels, or a Cluster', () => {
    expect(settings({})).toBeUndefined();
    expect(settings({ REDIS_URL: 'redis://redis:6379/2' })).toEqual({
      topology: { kind: 'server', url: 'redis://redis:6379/2' },
    });
    expect(settings({ REDIS_SENTINELS: 'one,[2001:db8::1]:26380', REDIS_SENTINEL_NAME: 'main' })).toEqual({
      topology: {
        kind: 'sentinel',
        name: 'main',
        nodes: [
          { host: 'one', port: 26_379 },
          { host: '2001:db8::1', port: 26_380 },
        ],
      },
    });
    expect(settings({ REDIS_CLUSTER_NODES: 'one:7000', REDIS_TLS: 'true', REDIS_PASSWORD: 'x' })).toEqual({
      topology: { kind: 'cluster', nodes: [{ host: 'one', port: 7_000 }] },
      password: 'x',
      tls: {},
    });
    expect(settings({ REDIS_URL: 'rediss://redis' })?.tls).toEqual({});
  });

  it('uses TLS for a redis:// URL too, if REDIS_TLS is set', () => {
    expect(settings({ REDIS_URL: 'redis://:redis:@redis:6380/2', REDIS_TLS: 'true' })).toEqual({
      topology: { kind: 'server', url: 'rediss://:redis:@redis:6380/2' },
      tls: {},
    });
  });

  it('rejects two of them, and an invalid address or password', () => {
    expect(() => settings({ REDIS_URL: 'redis://one', REDIS_SENTINELS: 'two' })).toThrow(ConfigError);
    for (const env of [
      { REDIS_URL: 'http://one' },
      { REDIS_URL: 'redis://:100%@one' },
      { REDIS_SENTINELS: 'a b' },
      { REDIS_CLUSTER_NODES: 'redis://one' },
    ])
      expect(() => settings(env)).toThrow(ConfigError);
  });
});
