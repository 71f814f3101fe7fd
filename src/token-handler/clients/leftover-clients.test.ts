// Tests, in Postgres, the records of clients that may be left at the identity provider.
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { recordRequesters } from '../../../test/support/requesters.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import { migrationsDirectory } from '../start.ts';
import { createLeftoverClients, type LeftoverClients } from './leftover-clients.ts';

const owner = { tenantId: 'urn:example:tenant', clientId: 'web', realm: 'demo', issuer: null };
const deletion = {
  ...owner,
  clientName: 'web (registration 1)',
  oidcClientId: 'oidc-1',
  registrationClientUri: 'https://a/1',
};
const now = new Date('2026-08-20T17:00:00Z');
const later = (milliseconds: number) => new Date(now.getTime() + milliseconds);

let database: TestDatabase;
let pool: pg.Pool;
let leftovers: LeftoverClients;
beforeAll(async () => {
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  leftovers = createLeftoverClients(unsharedPool(pool));
});
afterAll(() => database.drop());
beforeEach(() => pool.query('TRUNCATE client_leftovers, client_registrations, registration_attempts'));

const begin = (id: string, started: Date, failed = false) =>
  pool.query(
    `INSERT INTO registration_attempts (id, tenant_id, client_id, realm, client_name, started, failed)
     VALUES ($1, $2, 'web', 'demo', $5, $3, $4)`,
    [id, owner.tenantId, started, failed, id],
  );
const uuid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;

describe('leftovers', () => {
  it('are recorded once for each client whose deletion was refused', async () => {
    await leftovers.recordRefused(deletion, now);
    await leftovers.recordRefused(deletion, now);
    expect(await leftovers.list(owner.tenantId, 'web')).toEqual([
      { clientName: deletion.clientName, clientId: 'oidc-1', realm: 'demo', reason: 'token-refused', created: now },
    ]);
    expect(await leftovers.count()).toBe(1);
  });

  it('have the id of the configured client as name if an older version registered them', async () => {
    await leftovers.recordRefused({ ...deletion, clientName: null }, now);
    expect(await leftovers.list(owner.tenantId, 'web')).toMatchObject([{ clientName: 'web' }]);
  });

  it('are recorded of attempts that failed or are old, once, and not of those that are running', async () => {
    await begin(uuid(1), now);
    await begin(uuid(2), later(1_000));
    await begin(uuid(3), later(1_000), true);
    const [first, second] = await Promise.all([1, 2].map(() => leftovers.recordLostAttempts(later(500))));
    expect([...(first ?? []), ...(second ?? [])].map(({ clientName }) => clientName).sort()).toEqual([
      uuid(1),
      uuid(3),
    ]);
    expect(await leftovers.count()).toBe(2);
  });

  it('are listed newest first, at most 100, for their tenant and client', async () => {
    for (let at = 0; at < 101; at += 1)
      await leftovers.recordRefused({ ...deletion, oidcClientId: `oidc-${at}` }, later(at));
    const listed = await leftovers.list(owner.tenantId, 'web');
    expect([listed.length, listed[0]?.clientId, listed[99]?.clientId]).toEqual([100, 'oidc-100', 'oidc-1']);
    expect(await leftovers.list('urn:example:other', 'web')).toEqual([]);
    expect(await leftovers.list(owner.tenantId, 'other')).toEqual([]);
  });

  it('can be deleted only if their URI is recorded, they are at the same issuer, and they are not registered', async () => {
    await begin(uuid(1), now, true);
    await leftovers.recordLostAttempts(now);
    await leftovers.recordRefused(deletion, now);
    await leftovers.recordRefused({ ...deletion, oidcClientId: 'oidc-2', issuer: 'https://login.example.org' }, now);
    await leftovers.recordRefused({ ...deletion, oidcClientId: 'oidc-3' }, now);
    await pool.query(
      `INSERT INTO client_registrations (tenant_id, client_id, realm, oidc_client_id, client_secret,
         registration_access_token, registration_client_uri, redirect_uris, registered_at)
       VALUES ($1, 'web', 'demo', 'oidc-3', '', '', '', '[]', now())`,
      [owner.tenantId],
    );
    const found = await leftovers.deletable(owner);
    expect(found.map(({ oidcClientId }) => oidcClientId)).toEqual(['oidc-1']);
    await leftovers.forget(found[0]?.id ?? '');
    expect(await leftovers.deletable(owner)).toEqual([]);
  });

  it('are read with the share of their tenant and client; upkeep has a share of its own', async () => {
    const recorded = recordRequesters(pool);
    const counted = createLeftoverClients(recorded.pool);
    await counted.list(owner.tenantId, 'web');
    await counted.deletable(owner);
    expect(recorded.requesters.splice(0)).toEqual(Array(2).fill({ tenant: owner.tenantId, member: 'web' }));
    await counted.recordLostAttempts(now);
    await counted.recordRefused(deletion, now);
    await counted.forget(uuid(1));
    await counted.count();
    await counted.prune(now);
    expect(recorded.requesters).toEqual(Array(5).fill({ tenant: '', member: '' }));
  });

  it('are forgotten when they are old', async () => {
    await leftovers.recordRefused(deletion, now);
    await leftovers.prune(now);
    expect(await leftovers.count()).toBe(1);
    await leftovers.prune(later(1));
    expect(await leftovers.count()).toBe(0);
  });

  it('are limited to the newest 1,000 of each tenant', async () => {
    await pool.query(
      `INSERT INTO client_leftovers (tenant_id, client_id, realm, client_name, reason, created)
       SELECT $1, 'web', 'demo', nth::text, 'response-lost', $2::timestamptz + nth * interval '1 second'
       FROM generate_series(1, 1002) AS nth`,
      [owner.tenantId, now],
    );
    await leftovers.recordRefused({ ...deletion, tenantId: 'urn:example:other' }, now);
    await leftovers.prune(now);
    const { rows } = await pool.query(
      'SELECT tenant_id, count(*)::int, min(created) FROM client_leftovers GROUP BY 1 ORDER BY 1',
    );
    expect(rows).toEqual([
      { tenant_id: 'urn:example:other', count: 1, min: now },
      { tenant_id: owner.tenantId, count: 1_000, min: later(3_000) },
    ]);
  });
});
