// Tests that refreshes are spread over time, and that the number of running refreshes of a realm and of a person is
// limited. Also tests what happens to refreshes beyond the limit. The test decides when token requests end.
import { setImmediate as turn } from 'node:timers/promises';
import prom from 'prom-client';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestAccess, type TestAccess } from '../../../test/support/access.ts';
import {
  addReplicaClient,
  type OpenedSession,
  type SessionReplica,
  startSessionReplica,
} from '../../../test/support/session-replica.ts';
import { createRefreshMetrics } from './refresh-metrics.ts';
import { createRefreshQueue } from './refresh-queue.ts';
import { isRefreshDue, type Session, type TokenSet } from './session.ts';

let access: TestAccess;
beforeAll(async () => {
  access = await startTestAccess();
  await addReplicaClient(access);
});
afterAll(() => access.close());

/**
 * The token requests so far. Each entry has the person of the refreshed session, and a function that ends the request.
 */
type Running = { person: string; end(): void }[];

/** Starts a replica. Each entry of `running` is a token request of this replica, which the test ends with `end`. */
async function startReplica(): Promise<{ replica: SessionReplica; running: Running }> {
  const running: Running = [];
  let count = 0;
  const replica = await startSessionReplica({
    access,
    concurrency: 4,
    refresh: () => async (_client, _token, original) => {
      await new Promise<void>((end) => running.push({ person: original.subject, end }));
      count += 1;
      return { kind: 'refreshed', response: { access_token: `new ${count}`, expires_in: 300 } };
    },
  });
  onTestFinished(async () => {
    for (const { end } of running) end();
    await replica.close();
  });
  return { replica, running };
}

const now = Date.now();
const expired = { accessToken: 'old', accessIssued: now - 300_000, accessExpiry: now - 1, refreshToken: 'a token' };
const due = { ...expired, accessIssued: now - 200_000, accessExpiry: now + 20_000 };

async function openMany(replica: SessionReplica, person: string, count: number, tokens = expired) {
  const like: Session = (await replica.open({ tokens: { ...tokens, roles: [] } as TokenSet })).session;
  const opened: OpenedSession[] = [];
  // A person of one tenant has at most 100 sessions, but several tenants may share a realm.
  const tenantOf = (index: number) => `${like.tenantId}${'-'.repeat(index / 90)}`;
  for (let index = 0; index < count; index += 1)
    opened.push(
      await replica.reopen({ ...like, tenantId: tenantOf(index), user: { ...like.user, id: person } }, tokens),
    );
  return opened;
}

const metricOf = async ({ metrics }: SessionReplica, line: string) =>
  Number(
    (await metrics.registry.metrics())
      .split('\n')
      .find((text) => text.startsWith(line))
      ?.split(' ')[1],
  );

describe('the refreshes of sessions that began together', () => {
  it('begin between half a minute and a minute before their access token expires', () => {
    const dueWith = (left: number) => {
      const tokens = { ...expired, accessExpiry: now + left, accessIssued: now + left - 300_000, roles: [] };
      return Array.from({ length: 1_000 }, (_, index) => isRefreshDue(tokens, `session ${index}`, now)).filter(Boolean);
    };
    expect(dueWith(60_000)).toHaveLength(0);
    expect(dueWith(52_500).length).toBeGreaterThan(180);
    expect(dueWith(52_500).length).toBeLessThan(320);
    expect(dueWith(45_000).length).toBeGreaterThan(430);
    expect(dueWith(45_000).length).toBeLessThan(570);
    expect(dueWith(29_999)).toHaveLength(1_000);
  });
});

describe('the refreshes of a realm', () => {
  it('are bounded for the realm and for a person, who does not delay others', async () => {
    const { replica, running } = await startReplica();
    const many = await openMany(replica, 'one person', 30);
    const few = await openMany(replica, 'another person', 3);
    const calls = [...many, ...few].map(({ cookie }) => replica.call(cookie));
    await expect.poll(() => running.length).toBe(4);
    expect(running.map(({ person }) => person).toSorted()).toEqual([
      ...Array(2).fill('another person'),
      ...Array(2).fill('one person'),
    ]);
    expect(await metricOf(replica, 'formgate_token_refreshes_in_progress{state="running"}')).toBe(4);
    expect(await metricOf(replica, 'formgate_token_refreshes_in_progress{state="waiting"}')).toBe(29);
    let most = 0;
    for (let ended = 0; ended < 33; ended += 1) {
      while (!running[0]) await turn();
      most = Math.max(most, running.length);
      running.shift()?.end();
    }
    const received = await Promise.all(calls);
    expect(new Set(received).size).toBe(33);
    expect(received.every((token) => token.startsWith('new '))).toBe(true);
    expect(most).toBeLessThanOrEqual(4);
  });

  it('are bounded for all realms together, at sixteen times the bound of one realm', () => {
    const queue = createRefreshQueue(2, createRefreshMetrics({ registry: new prom.Registry(), queue: () => queue }));
    const people = Array.from({ length: 100 }, (_, nth) => ({ tenant: `realm ${nth % 50}`, member: `person ${nth}` }));
    expect(people.filter((person) => queue.tryTake(person) !== undefined)).toHaveLength(32);
  });

  it('get 503 with Retry-After beyond the queue, only if the access token has expired', async () => {
    const { replica, running } = await startReplica();
    const waiting = await openMany(replica, 'one person', 252, due);
    for (const { cookie } of waiting) expect(await replica.call(cookie)).toBe('old');
    await expect.poll(() => running.length).toBe(2);
    const [valid] = await openMany(replica, 'one person', 1, due);
    const [late] = await openMany(replica, 'one person', 1);
    expect(await replica.call(valid?.cookie ?? '')).toBe('old');
    const busy = { status: 503, slug: 'busy', headers: { 'Retry-After': '5' } };
    await expect(replica.call(late?.cookie ?? '')).rejects.toMatchObject(busy);
    expect(await metricOf(replica, 'formgate_token_refresh_refusals_total{reason="full"}')).toBeGreaterThanOrEqual(2);
    // Another person's refresh still gets a slot.
    const [other] = await openMany(replica, 'another person', 1);
    const sent = replica.call(other?.cookie ?? '');
    await expect.poll(() => running.some(({ person }) => person === 'another person')).toBe(true);
    running.find(({ person }) => person === 'another person')?.end();
    expect(await sent).toMatch(/^new/);
    // The replica stops when the running refreshes have ended, without waiting for the queued refreshes.
    for (const { end } of running) end();
    await replica.close();
    expect(running.length).toBeLessThan(20);
  });
});
