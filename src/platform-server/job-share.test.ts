// Tests that slow jobs of one tenant leave a job slot for the jobs of other tenants.
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Caller, callerOf, putTypes, send, settled, subscribe, typeId } from '../../test/support/notices.ts';
import { call, startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { tenantKey } from './tenant-key.ts';

let platform: TestPlatform;
let caller: Caller;
let database: pg.Pool;

beforeAll(async () => {
  platform = await startTestPlatform();
  caller = await callerOf(platform);
  database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  await putTypes(caller);
  await subscribe(caller, 'slow@example.org');
  const tenantId = encodeURIComponent(platform.otherTenant.id);
  await call(`${platform.url}/subscription/v1/types/${typeId}/subscriptions?tenantId=${tenantId}`, {
    method: 'POST',
    token: caller.token,
    body: { addressAs: 'Ana', channels: [{ channel: 'email', address: 'quick@example.org' }] },
  });
});

afterAll(async () => {
  await database.end();
  await platform.close();
});

/** Makes each statement that routes an event of the tenant take ten seconds. */
async function slowDown(tenant: string): Promise<void> {
  await database.query(`CREATE TABLE slow AS SELECT '${tenant}' AS tenant;
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(10) FROM slow WHERE tenant = NEW.tenant; RETURN NEW; END';
    CREATE TRIGGER slow BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION slow()`);
}

const waiting = async () =>
  (await database.query<{ n: number }>('SELECT count(*)::integer AS n FROM events WHERE routed IS NULL')).rows[0]?.n;

it('a tenant whose events take long to route does not delay the notices of another tenant', async () => {
  await slowDown(tenantKey(platform.tenant.id));
  for (let nth = 0; nth < 8; nth += 1) await send(caller, { correlationId: `form:${nth}` });
  const sent = Date.now();
  await send(caller, { tenantId: platform.otherTenant.id });
  await platform.mailbox.waitFor(({ to }) => to === 'quick@example.org');
  expect(Date.now() - sent).toBeLessThan(6_000);
  expect(await waiting()).toBe(8);
  await database.query('DELETE FROM slow');
  // Postponed events are routed later, each exactly once.
  await settled(database);
  expect(platform.mailbox.messages().filter(({ to }) => to === 'slow@example.org')).toHaveLength(8);
});
