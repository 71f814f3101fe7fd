// Measures a Redis with many sessions: memory, latency of reads, the count for the metric, and revoking a person's
// sessions. Uses the token handler's own store, against one server or a Cluster of three nodes.
import { randomBytes } from 'node:crypto';
import pino from 'pino';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { createRedis } from '../../src/service/redis/redis.ts';
import type { RedisSettings } from '../../src/service/redis/redis-fields.ts';
import { createRedisStore } from '../../src/token-handler/sessions/redis-store.ts';
import { recordKey } from '../../src/token-handler/sessions/session.ts';
import { quantile } from '../bench/latency.ts';

export interface SessionFigures {
  sessions: number;
  /** Sessions per second, created by 16 concurrent sign-ins. */
  created: number;
  /** Bytes of all nodes for one session with its index entries. */
  bytesPerSession: number;
  /** Milliseconds that a read takes if reads are sent one after another. */
  read: { p50: number; p99: number };
  /** Reads per second, with 16 concurrent reads. */
  reads: number;
  /** Milliseconds to count all sessions, and to end the ten sessions of one person. */
  count: number;
  endPerson: number;
}

export interface SessionsOptions {
  settings: RedisSettings;
  sessions: number;
  /** Returns the bytes of memory that all nodes use. */
  usedMemory(): Promise<number>;
}

/**
 * Bytes of a record, and of an encrypted token set with two Keycloak tokens. Both are random, so they do not compress.
 */
const sizes = { record: 420, tokens: 4_200 };
const perPerson = 10;
const hour = 3_600_000;
const width = 16;

export async function measureSessions({ settings, sessions, usedMemory }: SessionsOptions): Promise<SessionFigures> {
  const redis = createRedis({ settings, log: pino({ level: 'silent' }), metrics: createMetrics() });
  while (!(await redis.isReachable())) await new Promise((resolve) => setTimeout(resolve, 50));
  const store = createRedisStore(redis, { idle: hour });
  const text = (bytes: number) => randomBytes((bytes * 3) / 4).toString('base64url');
  const before = await usedMemory();
  const now = Date.now();
  const handles = Array.from({ length: sessions }, () => randomBytes(32).toString('base64url'));
  const create = async (index: number) => {
    const handle = handles[index] as string;
    await store.records.set(recordKey(handle), text(sizes.record), { expiration: { type: 'EX', value: hour / 1_000 } });
    const indexes = ['tenant:demo', `person:${Math.floor(index / perPerson)}`];
    await store.index.enter(indexes, handle, now + hour, now);
    await store.tokens.start(handle, { sealed: text(sizes.tokens), limit: now + 10 * hour }, now);
  };
  // Retry once, because on a busy machine a command may exceed the token handler's timeout.
  const created = await rateOf(sessions, (index) => create(index).catch(() => create(index)));
  // Wait for the index of all sessions, because a sign-in may end before the index contains its entry.
  while ((await store.tokens.count(now)) < sessions) await new Promise((resolve) => setTimeout(resolve, 50));
  const bytesPerSession = ((await usedMemory()) - before) / sessions;
  const load = async (index: number) => {
    const session = await store.tokens.load(handles[(index * 7919) % sessions] as string);
    if (!session) throw new Error('a session is missing');
  };
  const times: number[] = [];
  for (let index = 0; index < 3_000; index += 1) times.push(await milliseconds(() => load(index)));
  const reads = await rateOf(20_000, load);
  const count = await milliseconds(() => store.tokens.count(now));
  const endPerson = await milliseconds(async () => {
    const found = (await store.index.entries('person:3', 100)) ?? [];
    if (found.length !== perPerson) throw new Error(`${found.length} sessions of a person`);
    await Promise.all(found.map((handle) => store.tokens.end(handle)));
    await Promise.all(found.map((handle) => store.index.remove(['person:3', 'tenant:demo'], handle)));
  });
  redis.close();
  return {
    ...{ sessions, created, bytesPerSession, reads, count, endPerson },
    read: { p50: quantile(times, 0.5), p99: quantile(times, 0.99) },
  };
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

async function rateOf(count: number, work: (index: number) => Promise<void>): Promise<number> {
  let next = 0;
  const one = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  const took = await milliseconds(() => Promise.all(Array.from({ length: width }, one)));
  return (count / took) * 1_000;
}
