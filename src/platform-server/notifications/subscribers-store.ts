// Stores subscribers and their addresses in Postgres. The deletion of a subscriber also deletes every row that contains
// an address of the subscriber.
import { randomBytes } from 'node:crypto';
import type { Queryable } from '../../service/postgres/postgres.ts';
import { isUnrouted } from '../events/unrouted-sql.ts';
import { deliveryJobKey } from './deliveries-store.ts';
import type { Channel, Subscriber } from './subscription.ts';

export type SubscriberStore = ReturnType<typeof createSubscriberStore>;

export interface UserSubscriber {
  userId: string | undefined;
  addressAs: string;
  channels: Channel[];
}

export type FindOrCreate = SubscriberStore['findOrCreate'];

export function createSubscriberStore(database: Queryable) {
  async function create(id: string, tenant: string, subscriber: UserSubscriber, now: Date): Promise<boolean> {
    const { rowCount } = await database.query(
      `INSERT INTO subscribers (id, tenant, user_id, address_as, created) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (tenant, user_id) DO NOTHING`,
      [id, tenant, subscriber.userId ?? null, subscriber.addressAs, now],
    );
    if (rowCount !== 1) return false;
    for (const [position, { channel, address, verified }] of subscriber.channels.entries())
      await database.query(
        `INSERT INTO subscriber_channels (subscriber_id, channel, address, position, verified)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
        [id, channel, address, position, verified],
      );
    return true;
  }

  async function findAll(tenant: string, ids: readonly string[]): Promise<Subscriber[]> {
    const { rows } = await database.query<Subscriber>(
      `SELECT id, address_as AS "addressAs", ARRAY(
         SELECT json_build_object('channel', c.channel, 'address', c.address, 'verified', c.verified)
         FROM subscriber_channels c WHERE c.subscriber_id = s.id ORDER BY c.position) AS channels
       FROM subscribers s WHERE id = ANY($2) AND tenant = $1`,
      [tenant, ids],
    );
    return rows;
  }

  return {
    findAll,

    async find(tenant: string, id: string): Promise<Subscriber | undefined> {
      return (await findAll(tenant, [id]))[0];
    },

    /**
     * Keeps other transactions from deleting the subscriber. Resolves to false if it does not exist. Requires a
     * transaction.
     */
    async keep(tenant: string, id: string): Promise<boolean> {
      const sql = 'SELECT 1 FROM subscribers WHERE id = $2 AND tenant = $1 FOR KEY SHARE';
      return (await database.query(sql, [tenant, id])).rowCount === 1;
    },

    /**
     * Creates a subscriber with these addresses. If the user already has a subscriber, creates nothing and resolves to
     * false. Requires a transaction, so that no subscriber is stored without its addresses.
     */
    create,

    /**
     * Returns the id of the user's subscriber. If it does not exist, creates it with these addresses. Without a user
     * id, creates a new subscriber each time. No new address counts as verified, whatever the request says. Requires a
     * transaction.
     */
    async findOrCreate(tenant: string, subscriber: UserSubscriber, now: Date): Promise<string> {
      const id = randomBytes(12).toString('hex');
      const channels = subscriber.channels.map((channel) => ({ ...channel, verified: false }));
      if (await create(id, tenant, { ...subscriber, channels }, now)) return id;
      const { rows } = await database.query<{ id: string }>(
        'SELECT id FROM subscribers WHERE tenant = $1 AND user_id = $2 FOR UPDATE',
        [tenant, subscriber.userId],
      );
      // A concurrent request deleted the subscriber between the two statements. This error code makes the caller retry.
      if (!rows[0]) throw Object.assign(new Error('a concurrent request removed the subscriber'), { code: '40001' });
      return rows[0].id;
    },

    /**
     * Returns the number of notices that are still to be sent to a subscriber. An event that is not routed yet counts
     * as one notice. Quarantined events and deliveries do not count.
     */
    async pendingNotices(tenant: string, id: string): Promise<number> {
      const { rows } = await database.query<{ count: number }>(
        `SELECT (
           SELECT count(*) FROM deliveries WHERE subscriber_id = $2 AND NOT quarantined
         )::int + (
           SELECT count(*) FROM events e WHERE e.tenant = $1 AND ${isUnrouted('e')}
             AND e.correlation_id IN (SELECT correlation_id FROM subscription_criteria WHERE subscriber_id = $2)
         )::int AS count`,
        [tenant, id],
      );
      return rows[0]?.count ?? 0;
    },

    /**
     * Deletes a subscriber with its addresses, subscriptions and codes, and its pending deliveries with up to 1,000 of
     * their jobs. A further job finds no delivery and does nothing.
     */
    async remove(tenant: string, id: string): Promise<boolean> {
      await database.query(
        `SELECT graphile_worker.remove_job(key) FROM (
           SELECT ${deliveryJobKey} AS key
           FROM deliveries d JOIN subscribers s ON s.id = d.subscriber_id WHERE s.id = $2 AND s.tenant = $1
           LIMIT 1000) AS pending`,
        [tenant, id],
      );
      const { rowCount } = await database.query('DELETE FROM subscribers WHERE id = $2 AND tenant = $1', [tenant, id]);
      return rowCount === 1;
    },
  };
}
