// Tests, in Postgres, the queue of work that registrations leave behind: claims, retries, and the quarantine.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { migrationsDirectory } from '../start.ts';
import {
  createPendingWorkStore,
  createWorkQuarantine,
  type PendingWorkStore,
  type WorkKind,
} from './pending-work-store.ts';

const minute = 60_000;
const tenantId = 'urn:example:tenant';
const now = new Date('2026-08-20T17:00:00Z');
const later = (milliseconds: number) => new Date(now.getTime() + milliseconds);
const distant = new Date('2100-01-01T00:00:00Z');
const clock = () => later(minute);

let database: TestDatabase;
let pool: pg.Pool;
let store: PendingWorkStore;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  store = createPendingWorkStore({ pool, keys: createKeyRing(`k1:${Buffer.alloc(32, 1).toString('base64')}`) });
});
afterAll(() => database.drop());
beforeEach(() => pool.query('TRUNCATE client_deletions, client_events, client_registrations, quarantine'));

const eventId = (nth: number) => `00000000-0000-4000-8000-00000000000${nth}`;
async function addEvent(nth: number, due = now): Promise<string> {
  await pool.query(
    `INSERT INTO client_events (id, tenant_id, name, payload, created, not_before) VALUES ($1, $2, $3, $4, $5, $6)`,
    [eventId(nth), tenantId, `event-${nth}`, { nth }, later(-minute), due],
  );
  return eventId(nth);
}
async function addDeletion(nth: number, due = now): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(
    `INSERT INTO client_deletions (tenant_id, client_id, realm, issuer, client_name, oidc_client_id,
       registration_access_token, registration_client_uri, created, not_before)
     VALUES ($1, 'web', 'demo', 'https://login.example.org', $2, $3, 'k1.token', $4, $5, $5) RETURNING id`,
    [tenantId, `web (registration ${nth})`, `oidc-${nth}`, `https://a/${nth}`, due],
  );
  return rows[0]?.id ?? '';
}
const claim = (kind: WorkKind, at = now, limit = 10) =>
  store.claim(kind, { now: at, until: new Date(at.getTime() + minute), limit });
const claimed = async (kind: WorkKind, at = now, limit = 10) =>
  (await claim(kind, at, limit)).map(({ id }) => id).sort();
const quarantine = () => createWorkQuarantine({ pool, clock });
const cause = { reason: 'service-refused' as const, detail: 'events 422' };

describe('a claim', () => {
  it('returns an event with all that sending it needs, and counts the attempt', async () => {
    const id = await addEvent(1);
    const event = { id, tenantId, name: 'event-1', payload: { nth: 1 }, created: later(-minute) };
    expect(await claim('event')).toEqual([{ ...event, attempts: 1, refusals: 0 }]);
  });

  it('returns a deletion with all that it needs, and counts the attempt', async () => {
    const id = await addDeletion(1);
    const deletion = {
      ...{ id, tenantId, clientId: 'web', realm: 'demo', issuer: 'https://login.example.org' },
      ...{ clientName: 'web (registration 1)', oidcClientId: 'oidc-1' },
      ...{ registrationAccessToken: 'k1.token', registrationClientUri: 'https://a/1' },
    };
    expect(await claim('deletion')).toEqual([{ ...deletion, attempts: 1, refusals: 0 }]);
  });

  it.each(['event', 'deletion'] as const)('takes each %s that is due, those that wait longest first', async (kind) => {
    const add = kind === 'event' ? addEvent : addDeletion;
    await add(1, later(1));
    const [second, third] = [await add(2), await add(3, later(-1))];
    expect(await claimed(kind, now, 1)).toEqual([third]);
    expect(await claimed(kind)).toEqual([second]);
    expect(await claimed(kind)).toEqual([]);
  });

  it('takes the first of each tenant before the second of any', async () => {
    const due = [await addDeletion(1, later(-3)), await addDeletion(2, later(-2)), await addDeletion(3, later(-1))];
    await pool.query("UPDATE client_deletions SET tenant_id = 'urn:example:other' WHERE id = $1", [due[2]]);
    expect(await claimed('deletion', now, 2)).toEqual([due[0], due[2]].sort());
    expect(await claimed('deletion', now, 2)).toEqual([due[1]]);
  });

  it('never takes the same row twice, however many pods claim at the same time', async () => {
    for (let nth = 1; nth <= 9; nth += 1) await addEvent(nth);
    const all = await Promise.all(Array.from({ length: 12 }, () => claimed('event', now, 2)));
    const ids = [...all.flat(), ...(await claimed('event'))];
    expect(ids.toSorted()).toEqual(Array.from({ length: 9 }, (_, nth) => eventId(nth + 1)));
  });

  it('lasts for its time only, and then another attempt counts', async () => {
    await addEvent(1);
    await claim('event');
    expect(await claim('event', later(minute - 1))).toEqual([]);
    expect(await claim('event', later(minute))).toMatchObject([{ attempts: 2 }]);
  });

  it('takes no deletion of a client that is registered', async () => {
    const [, other] = [await addDeletion(1), await addDeletion(2)];
    await pool.query(
      `INSERT INTO client_registrations (tenant_id, client_id, realm, oidc_client_id, client_secret,
         registration_access_token, registration_client_uri, redirect_uris, registered_at)
       VALUES ($1, 'web', 'demo', 'oidc-1', '', '', '', '[]', now())`,
      [tenantId],
    );
    expect(await claimed('deletion')).toEqual([other]);
  });
});

describe('work', () => {
  it('that is done is removed with its entry in the quarantine', async () => {
    const [first, second] = [await addEvent(1), await addEvent(2)];
    for (const row of await claim('event')) await store.quarantine('event', row, cause, now);
    await quarantine().release('all');
    await store.done('event', first);
    expect(await claimed('event', later(minute))).toEqual([second]);
    expect((await pool.query('SELECT item FROM quarantine')).rows).toEqual([{ item: second }]);
  });

  it('that is removed while it is processed, such as when an administrator provides the client, is not quarantined', async () => {
    await addDeletion(1);
    const [row] = await claim('deletion');
    await pool.query('DELETE FROM client_deletions');
    if (row) await store.quarantine('deletion', row, cause, now);
    expect((await pool.query('SELECT item FROM quarantine')).rows).toEqual([]);
  });

  it('that failed is due at its next time, with its refusals', async () => {
    const [first, second] = [await addDeletion(1), await addDeletion(2)];
    await claim('deletion');
    await store.retry('deletion', first, { notBefore: later(5), refusals: 3 });
    expect(await claim('deletion', later(4))).toEqual([]);
    expect(await claim('deletion', later(5))).toMatchObject([{ id: first, attempts: 2, refusals: 3 }]);
    expect(await claim('deletion', later(minute))).toMatchObject([{ id: second, attempts: 2, refusals: 0 }]);
  });

  it('is counted by its kind while it is neither done nor quarantined', async () => {
    expect(await store.pending()).toEqual({ deletion: 0, event: 0 });
    await addDeletion(1);
    for (const nth of [1, 2, 3]) await addEvent(nth);
    const [row] = await claim('event', now, 1);
    if (row) await store.quarantine('event', row, cause, now);
    expect(await store.pending()).toEqual({ deletion: 1, event: 2 });
  });
});

describe('quarantined work', () => {
  it('is listed with ids only', async () => {
    await addEvent(1);
    const deletionId = await addDeletion(1);
    for (const kind of ['event', 'deletion'] as const)
      for (const row of await claim(kind)) await store.quarantine(kind, row, cause, kind === 'event' ? later(1) : now);
    const common = { tenantId, ...cause, attempts: 1, released: false };
    expect((await quarantine().list({ top: 10 })).items).toMatchObject([
      { ...common, kind: 'client-event', item: eventId(1), about: { event: 'event-1' }, firstSeen: later(1) },
      {
        ...{ ...common, kind: 'client-deletion', item: deletionId, firstSeen: now },
        about: { clientId: 'web', oidcClientId: 'oidc-1' },
      },
    ]);
  });

  it('is not tried until it is released, and its next refusal is the last', async () => {
    const [event, other] = [await addEvent(1), await addEvent(2)];
    const deletion = await addDeletion(1);
    for (const kind of ['event', 'deletion'] as const)
      for (const row of await claim(kind)) await store.quarantine(kind, { ...row, refusals: 10 }, cause, now);
    expect([await claimed('event', distant), await claimed('deletion', distant)]).toEqual([[], []]);
    const { items } = await quarantine().list({ top: 10 });
    for (const { id, item } of items)
      if (item !== other) expect(await quarantine().release({ id })).toMatchObject([{ item, released: true }]);
    // The quarantine's clock is a minute ahead. By this clock, the released rows are due immediately. By the real
    // clock, they are not due yet.
    expect([await claimed('event'), await claimed('deletion')]).toEqual([[], []]);
    expect(await claim('event', clock())).toMatchObject([{ id: event, refusals: 1_000 }]);
    expect(await claim('deletion', clock())).toMatchObject([{ id: deletion, refusals: 1_000 }]);
  });

  it('that is due again is not postponed by a release', async () => {
    const id = await addEvent(1);
    const [row] = await claim('event');
    if (row) await store.quarantine('event', row, cause, now);
    await store.retry('event', id, { notBefore: now, refusals: 2 });
    await quarantine().release('all');
    expect(await claim('event')).toMatchObject([{ id, refusals: 2 }]);
  });

  it.each([
    [
      'event',
      "client_events (id, tenant_id, name, payload, created, not_before) SELECT gen_random_uuid(), $1, 'x', '{}'",
    ],
    [
      'deletion',
      `client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token, registration_client_uri,
         created, not_before) SELECT $1, 'web', 'demo', nth::text, '', ''`,
    ],
  ] as const)('of the kind %s is limited to the newest 1,000 rows of each tenant', async (kind, insert) => {
    const due = await (kind === 'event' ? addEvent(1) : addDeletion(1));
    await pool.query(
      `INSERT INTO ${insert}, $2::timestamptz + nth * interval '1 second', 'infinity'
       FROM generate_series(1, 1002) AS nth`,
      [tenantId, now],
    );
    await pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       SELECT $1, id::text, tenant_id, '{}', 'service-refused', '', created, created, 10, '1'
       FROM client_${kind}s WHERE not_before = 'infinity'`,
      [`client-${kind}`],
    );
    expect(await store.prune()).toBe(2);
    expect(await store.prune()).toBe(0);
    const { rows } = await pool.query(
      `SELECT count(*)::int, min(created), count(q.id)::int AS quarantined FROM client_${kind}s t
       LEFT JOIN quarantine q ON q.item = t.id::text WHERE not_before = 'infinity'`,
    );
    expect(rows).toEqual([{ count: 1_000, min: later(3_000), quarantined: 1_000 }]);
    expect(await claimed(kind)).toEqual([due]);
  });

  it.each([
    [
      'event',
      "client_events (id, tenant_id, name, payload, attempts, created, not_before) SELECT gen_random_uuid(), $1, 'x', '{}'",
    ],
    [
      'deletion',
      `client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token, registration_client_uri,
         attempts, created, not_before) SELECT $1, 'web', 'demo', nth::text, '', ''`,
    ],
  ] as const)('of the kind %s is limited together with work that fails without being refused', async (kind, insert) => {
    const due = await (kind === 'event' ? addEvent(1) : addDeletion(1));
    await pool.query(
      `INSERT INTO ${insert}, 1, $2::timestamptz + nth * interval '1 second',
         CASE WHEN nth % 2 = 0 THEN 'infinity' ELSE $2::timestamptz END
       FROM generate_series(1, 1002) AS nth`,
      [tenantId, now],
    );
    await pool.query(`UPDATE client_${kind}s SET tenant_id = 'urn:example:other' WHERE created = $1`, [later(2_000)]);
    expect(await store.prune()).toBe(1);
    expect(await store.prune()).toBe(0);
    const { rows } = await pool.query(
      `SELECT count(*)::int, min(created) FROM client_${kind}s WHERE attempts > 0 GROUP BY tenant_id ORDER BY count`,
    );
    expect(rows).toEqual([
      { count: 1, min: later(2_000) },
      { count: 1_000, min: later(3_000) },
    ]);
    expect((await pool.query(`SELECT id FROM client_${kind}s WHERE attempts = 0`)).rows).toEqual([{ id: due }]);
  });
});
