// Tests the limit on the clients that a tenant registers (TENANT_REGISTRATION_LIMIT), with a real identity provider,
// configuration service and Postgres. How concurrent registrations share the places is tested in
// registration-locks.test.ts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestTokenHandler, type TestTokenHandler } from '../../../test/support/token-handler.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { openRegistration, registrationColumns, type StoredRegistration } from './registration.ts';

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
    const sql = `SELECT ${registrationColumns} FROM client_registrations WHERE client_id = 'second'`;
    const [row] = await handler.rows<StoredRegistration>(sql);
    if (!row) throw new Error('second is not registered');
    const { oidcClientId, clientSecret } = openRegistration(createKeyRing(handler.config.KEY_RING), row);
    const token = await handler.adminToken();
    const body = { clientId: oidcClientId, clientSecret };
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
