// Tests the limit on the clients that a tenant registers (TENANT_REGISTRATION_LIMIT), with a real identity provider,
// configuration service and Postgres. How concurrent registrations share the places is tested in
// registration-locks.test.ts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { openRegistration, registrationColumns, type StoredRegistration } from './registration.ts';

async function credentialsOf(handler: TestTokenHandler, id: string) {
  const sql = `SELECT ${registrationColumns} FROM client_registrations WHERE client_id = $1 AND tenant_id = $2`;
  const [row] = await handler.rows<StoredRegistration>(sql, [id, handler.platform.tenant.id]);
  if (!row) throw new Error(`${id} is not registered`);
  const { oidcClientId, clientSecret } = openRegistration(createKeyRing(handler.config.KEY_RING), row);
  return { clientId: oidcClientId, clientSecret };
}

const refused = { status: 409, body: { type: 'urn:formgate:problem:conflict' } };

describe('an administrator whose tenant has registered as many clients as it may', () => {
  let handler: TestTokenHandler;
  beforeAll(async () => {
    handler = await startTestTokenHandler({ env: { TENANT_REGISTRATION_LIMIT: '2' } });
    const client = { redirectUris: ['https://permits.example.org/cb'] };
    const clients = { first: client, second: client, third: client };
    await handler.configure({ 'core-app': {} }, { core: true });
    await handler.configure(clients);
    await handler.configure(clients, { tenant: handler.platform.otherTenant });
    for (const id of ['first', 'second']) expect((await handler.register(id)).status).toBe(200);
  });
  afterAll(() => handler.close());

  it('gets 409 for a further client, which is not created at the identity provider', async () => {
    const detail = expect.stringMatching(/has 2 registered clients.*TENANT_REGISTRATION_LIMIT/);
    // With an invalid token, the response would be 400 if the identity provider was called.
    for (const registrationToken of [await handler.platform.access.registrationToken('demo'), 'invalid']) {
      const token = await handler.adminToken();
      const answer = await handler.api('/clients/third', { method: 'POST', token, body: { registrationToken } });
      expect(answer).toMatchObject({ status: 409, body: { ...refused.body, detail } });
    }
    expect(await handler.rows('SELECT id FROM registration_attempts')).toEqual([]);
    const registered = await handler.rows('SELECT client_id AS id FROM client_registrations ORDER BY client_id');
    expect(registered).toEqual([{ id: 'first' }, { id: 'second' }]);
  });

  it('also gets 409 for a further client that exists at the identity provider', async () => {
    const body = await credentialsOf(handler, 'second');
    const token = await handler.adminToken();
    const register = (id: string) => handler.api(`/clients/${id}`, { method: 'POST', token, body });
    expect(await register('third')).toMatchObject(refused);
    expect((await register('second')).status).toBe(200);
  });

  it('can still register those clients again, and update them', async () => {
    expect((await handler.register('first')).status).toBe(200);
    const token = await handler.adminToken();
    const body = { redirectUris: ['https://permits.example.org/other'] };
    expect((await handler.api('/clients/first', { method: 'PUT', token, body })).status).toBe(200);
  });

  it('can still register a core client', async () => {
    expect((await handler.register('core-app')).status).toBe(200);
    expect((await handler.register('core-app')).status).toBe(200);
  });

  it('does not use the places of another tenant', async () => {
    expect((await handler.register('third', { realm: handler.platform.otherTenant.realm })).status).toBe(200);
  });
});

describe('an administrator who registers clients faster than the replaced ones can be deleted', () => {
  let handler: TestTokenHandler;
  beforeAll(async () => {
    handler = await startTestTokenHandler();
    const clients = { app: { redirectUris: ['https://permits.example.org/cb'] } };
    await handler.configure(clients);
    await handler.configure(clients, { tenant: handler.platform.otherTenant });
    expect((await handler.register('app')).status).toBe(200);
  });
  afterAll(() => handler.close());

  const later = `now() + interval '1 day'`;
  it.each([
    [
      'deletions',
      `INSERT INTO client_deletions (tenant_id, client_id, realm, oidc_client_id, registration_access_token,
         registration_client_uri, created, not_before)
       SELECT tenant_id, client_id, realm, 'replaced ' || nth, '', '', now(), ${later}
       FROM client_registrations, generate_series(1, 2000) nth WHERE tenant_id = $1`,
      'DELETE FROM client_deletions',
    ],
    [
      'events',
      `INSERT INTO client_events (id, tenant_id, name, payload, created, not_before)
       SELECT gen_random_uuid(), $1, 'client-registered', '{}', now(), ${later} FROM generate_series(1, 2000)`,
      'DELETE FROM client_events',
    ],
  ])('gets 503 beyond 2,000 outstanding %s; other tenants are served', async (_kind, fill, empty) => {
    await handler.rows(fill, [handler.platform.tenant.id]);
    const registrationToken = await handler.platform.access.registrationToken('demo');
    const provided = await credentialsOf(handler, 'app');
    for (const body of [{ registrationToken }, { registrationToken: 'invalid' }, provided]) {
      const token = await handler.adminToken();
      const answer = await handler.api('/clients/app', { method: 'POST', token, body });
      expect(answer).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
      expect(answer.headers.get('retry-after')).toBe('60');
    }
    expect(await handler.rows('SELECT id FROM registration_attempts')).toEqual([]);
    expect((await handler.register('app', { realm: handler.platform.otherTenant.realm })).status).toBe(200);
    await handler.rows(empty);
    expect((await handler.register('app')).status).toBe(200);
  });
});
