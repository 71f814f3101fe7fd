// Tests what the platform keeps about applicants: one subscriber for each form while the form exists, and nothing after
// its deletion. Runs with both implementations of the platform, because only one of them makes user ids unique.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';
import { call, roleToken } from '../../../test/support/platform.ts';
import { ownBehaviour, referenceBehaviour } from '../../../test/support/platform-behaviour.ts';
import { reconcileHere, reconcilerEnv } from '../../../test/support/reconciler.ts';

describe.each([
  ['its own behaviour', ownBehaviour],
  ['the behaviour of the reference implementation', referenceBehaviour],
])('on a platform with %s', (_name, platformEnv) => {
  const isReference = platformEnv === referenceBehaviour;
  let world: FormWorld;
  let replicas: FormReplica[];
  beforeAll(async () => {
    world = await startFormWorld({ platformEnv });
    const env = { SUBSCRIBER_REMOVAL_DELAY: 'PT1S', NOTICE_TIME: 'PT0.01S' };
    replicas = await Promise.all([world.start({ env }), world.start({ env })]);
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

  /** Sends three concurrent requests that subscribe the form's user id, as uncoordinated clients would. */
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
    // Hides the existing subscriber, so that the first of the three requests does not find it.
    const hidden = 'UPDATE reference_users SET user_id = $2 WHERE user_id = $1';
    if (isReference) await world.platformPool.query(hidden, [urn, 'hidden']);
    for (const { status } of await Promise.all([ask(), ask(), ask()])) expect(status).toBe(200);
    if (isReference) await world.platformPool.query(hidden, ['hidden', urn]);
  }

  it('a form has one subscriber, although codes are sent while the dispatcher subscribes', async () => {
    const ids = await create(12);
    const codes = await Promise.all(
      ids.map((id, nth) => replica(nth + 1).ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } })),
    );
    expect(codes.filter(({ status }) => status !== 202).map(({ text }) => text)).toEqual([]);
    const counts = await kept(
      'SELECT count(DISTINCT subscriber_id)::int AS value FROM subscription_criteria WHERE correlation_id IS NOT NULL GROUP BY correlation_id',
    );
    expect(counts.map(({ value }) => value)).toEqual(ids.map(() => 1));
    await Promise.all(ids.map(remove));
  });

  it('the reconciler removes the second subscriber of a form whose first request to subscribe was lost', async () => {
    const [id = ''] = await create(1);
    await drained(world.pool);
    await duplicate(id);
    // The dispatcher writes the same row after it has repeated a failed `subscribe` request successfully.
    await world.pool.query('INSERT INTO subscriber_checks VALUES ($1, now()) ON CONFLICT DO NOTHING', [id]);
    const before = (await subscribers()).length;
    const { outcome, counts } = await reconcileHere(
      { ...reconcilerEnv(world.platform, world.databaseUrl), CORE_CLIENTS: 'off' },
      { arguments: { only: 'expire' } },
    );
    expect(outcome).toBe('succeeded');
    const { rows } = await world.pool.query('SELECT subscriber_id AS value FROM forms WHERE id = $1', [id]);
    const left = await kept(
      `SELECT DISTINCT subscriber_id AS value FROM subscription_criteria WHERE correlation_id LIKE '%${id}'`,
    );
    expect(left).toEqual(rows);
    expect(counts.subscribersRemoved).toBe(before - (await subscribers()).length);
    expect((await world.pool.query('SELECT FROM subscriber_checks')).rowCount).toBe(0);
    await remove(id);
  });

  it('nothing about the applicants is left after the deletion of their forms, not even of duplicate subscribers', async () => {
    const [id = '', early = ''] = await create(2);
    await duplicate(id);
    await Promise.all([remove(id), remove(early)]);
    await expect.poll(async () => [...(await addresses()), ...(await subscribers())]).toEqual([]);
    await drained(world.pool);
  });
});
