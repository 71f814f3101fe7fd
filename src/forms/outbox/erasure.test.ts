// What the platform keeps about applicants: one subscriber for each form while it exists, and nothing after its deletion.
// Runs with both behaviours of the platform, because only one of them makes user ids unique.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';
import { call, roleToken } from '../../../test/support/platform.ts';
import { ownBehaviour, referenceBehaviour } from '../../../test/support/platform-behaviour.ts';

describe.each([
  ['its own behaviour', ownBehaviour],
  ['the behaviour of the reference implementation', referenceBehaviour],
])('on a platform with %s', (_name, platformEnv) => {
  let world: FormWorld;
  let replicas: FormReplica[];
  let shift = 0;
  beforeAll(async () => {
    world = await startFormWorld({ platformEnv });
    const clock = () => new Date(Date.now() + shift);
    replicas = await Promise.all([world.start({ clock }), world.start({ clock })]);
  });
  afterAll(() => world.close());

  const replica = (nth: number) => replicas[nth % replicas.length] as FormReplica;
  const create = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, nth) => draft(replica(nth), `canary-${nth}@example.org`)));
  const remove = async (id: string) => {
    expect((await replica(0).ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
  };
  const kept = async (sql: string) => (await world.platformPool.query<{ value: string }>(sql)).rows;
  const addresses = () => kept('SELECT address AS value FROM subscriber_channels ORDER BY 1');
  const subscribers = () => kept('SELECT id AS value FROM subscribers');

  /** Subscribes the form's user id twice at the same time, as two components would that do not know of each other. */
  async function duplicate(id: string): Promise<void> {
    const { access, tenant, url } = world.platform;
    const token = await roleToken(access, { 'notification-service': ['subscription-app'] });
    const urn = access.urns.form(id);
    const body = {
      userId: urn,
      channels: [{ channel: 'email', address: 'canary-duplicate@example.org' }],
      criteria: { correlationId: urn },
    };
    const path = `/subscription/v1/types/form-status-updates/subscriptions?tenantId=${encodeURIComponent(tenant.id)}`;
    const ask = () => call(`${url}${path}`, { method: 'POST', token, body });
    for (const { status } of await Promise.all([ask(), ask(), ask()])) expect(status).toBe(200);
  }

  it('a form has one subscriber, although codes are sent while the dispatcher subscribes', async () => {
    const ids = await create(12);
    const codes = await Promise.all(
      ids.map((id, nth) => replica(nth + 1).ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } })),
    );
    expect(codes.map(({ status }) => status)).toEqual(ids.map(() => 202));
    const counts = await kept(
      'SELECT count(*)::int AS value FROM subscription_criteria WHERE correlation_id IS NOT NULL GROUP BY correlation_id',
    );
    expect(counts.map(({ value }) => value)).toEqual(ids.map(() => 1));
    await Promise.all(ids.map(remove));
  });

  it('nothing about the applicants is left after the deletion of their forms, not even of duplicate subscribers', async () => {
    const [id = '', early = ''] = await create(2);
    await duplicate(id);
    await Promise.all([remove(id), remove(early)]);
    const pending = "SELECT FROM outbox WHERE accepted IS NULL AND kind <> 'remove-subscriber'";
    await expect.poll(async () => (await world.pool.query(pending)).rowCount).toBe(0);
    shift += 24 * 60 * 60_000;
    await expect.poll(async () => [...(await addresses()), ...(await subscribers())]).toEqual([]);
    await drained(world.pool);
  });
});
