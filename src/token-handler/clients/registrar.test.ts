// Tests faults at every step of a registration and of an update. Afterwards, the old or the new registration works, the
// response is correct, and no unused client remains. Uses a real identity provider behind a proxy that breaks calls,
// and a real Postgres that fails.
import type { IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fault, type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import {
  registrationToken,
  startTestTokenHandler,
  type TestTokenHandler,
} from '../../../test/support/token-handler.ts';
import { startTracedAccess, type TracedAccess } from '../../../test/support/traced-access.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { openRegistration, registrationColumns, type StoredRegistration } from './registration.ts';

const callback = 'https://permits.example.org/cb';
const other = 'https://permits.example.org/other';

let access: TracedAccess;
let proxy: FaultProxy;
let platform: TestPlatform;
let handler: TestTokenHandler;
let token: string;
let tokenMayDelete = false;

beforeAll(async () => {
  access = await startTracedAccess();
  proxy = await startFaultProxy(access.url.replace('/auth', ''), {
    scripted: deleteAsAdministrator,
    // Does not count reads of the keys that verify bearer tokens, because they can happen at any time.
    uncounted: (path) => path.includes('/realms/core/'),
  });
  platform = await startTestPlatform({ access });
  handler = await startTestTokenHandler({
    platform,
    accessUrl: `${proxy.url}/auth`,
    // Tests of hanging calls wait for this timeout. A shorter timeout would also end ordinary calls, which may take a
    // second on a busy machine.
    env: { PLATFORM_TIMEOUT: 'PT4S' },
  });
  token = await handler.adminToken();
  await handler.configure({ 'permits-web': { redirectUris: [callback] } });
});

afterAll(async () => {
  await handler.close();
  await platform.close();
  await proxy.close();
  await access.close();
});

beforeEach(async () => {
  await proxy.heal();
  await settled();
  expect((await handler.register('permits-web')).status).toBe(200);
  await settled();
  // Background work of the previous test may have recorded a leftover while this hook waited.
  await handler.rows('TRUNCATE client_leftovers');
  const { oidcClientId } = await stored();
  // A test that failed may have left other clients at the identity provider.
  for (const id of access.registeredClients()) if (id !== oidcClientId) await removeAtAccess(id);
  await proxy.heal();
});

afterEach(async () => {
  tokenMayDelete = false;
  await proxy.heal();
  await repairDatabase();
});

/** Imitates Keycloak, in which the token of an account with the role manage-clients may create and delete clients. */
async function deleteAsAdministrator({ method, url, headers }: IncomingMessage): Promise<number | undefined> {
  if (!tokenMayDelete || method !== 'DELETE' || headers.authorization !== `Bearer ${registrationToken}`)
    return undefined;
  await removeAtAccess(url?.split('/').at(-1) ?? '');
  return 204;
}

/** Breaks `times` consecutive calls to the identity provider. The first is the `at`-th call from now. */
async function breakCall(fault: Fault, at: number, times = 1): Promise<void> {
  await proxy.break(fault, { at, times });
}

async function stored() {
  const [row] = await handler.rows<StoredRegistration>(`SELECT ${registrationColumns} FROM client_registrations`);
  if (!row) throw new Error('nothing is registered');
  return openRegistration(createKeyRing(handler.config.KEY_RING), row);
}

/**
 * Expects that the stored client works, that the identity provider has no other client, and that the token handler can
 * still change the client.
 */
async function expectWhole(redirectUris: string[]) {
  const { oidcClientId, clientSecret } = await stored();
  expect(await access.accepts(oidcClientId, clientSecret)).toBe(true);
  await settled();
  await expect.poll(() => access.registeredClients()).toEqual([oidcClientId]);
  expect((await stored()).redirectUris).toEqual(redirectUris);
  expect((await update(callback)).status).toBe(200);
}

const leftovers = async () =>
  (await handler.api('/clients/permits-web/leftovers', { token })).body as Record<string, unknown>[];

const update = (uri: string) =>
  handler.api('/clients/permits-web', { method: 'PUT', token, body: { redirectUris: [uri] } });

/** Waits until no background work is left. Call it only while no request is running. */
async function settled(): Promise<void> {
  await loseAttempts();
  const rest =
    'SELECT FROM client_deletions UNION ALL SELECT FROM client_events UNION ALL SELECT FROM registration_attempts';
  await expect.poll(() => handler.rows(rest)).toEqual([]);
}

/** Backdates all registration attempts, so that `upkeep.ts` considers them interrupted and records them as lost. */
const loseAttempts = () => handler.rows("UPDATE registration_attempts SET started = started - interval '1 day'");

const problems = (after: number) =>
  handler.log
    .lines()
    .slice(after)
    .filter(({ level }) => level === 'warn' || level === 'error')
    .map(({ msg }) => String(msg));

describe('a registration', () => {
  const faults: Fault[] = ['reset', 'hang', 'half a response', 401, 404, 429, 500, 502, 503, 504];

  it.each(faults)('responds with 502 if discovery fails (%s), and the earlier registration stays', async (fault) => {
    const before = await stored();
    await breakCall(fault, 1);
    expect((await handler.register('permits-web')).status).toBe(502);
    expect(proxy.calls.filter((call) => call.startsWith('POST'))).toEqual([]);
    expect((await stored()).oidcClientId).toBe(before.oidcClientId);
    expect(await handler.rows('SELECT FROM registration_attempts')).toEqual([]);
    await expectWhole([callback]);
  });

  it.each<[Fault, number]>([
    ['reset', 502],
    ['hang', 502],
    [400, 400],
    [401, 400],
    [403, 400],
    [404, 502],
    [429, 502],
    [500, 502],
    [503, 502],
  ])(
    'fails if the identity provider creates no client (%s leads to %i), and the earlier registration stays',
    async (fault, status) => {
      const before = await stored();
      await breakCall(fault, 2);
      expect((await handler.register('permits-web')).status).toBe(status);
      expect((await stored()).oidcClientId).toBe(before.oidcClientId);
      await expectWhole([callback]);
    },
  );

  it.each<Fault>(['lost response', 'half a response'])(
    'responds with 502 if its response is lost (%s), the earlier registration stays, and the log reports the lost client once',
    async (fault) => {
      const before = await stored();
      const known = access.registeredClients();
      const lines = handler.log.lines().length;
      await breakCall(fault, 2);
      expect((await handler.register('permits-web')).status).toBe(502);
      expect((await stored()).oidcClientId).toBe(before.oidcClientId);
      expect(await access.accepts(before.oidcClientId, before.clientSecret)).toBe(true);
      const [orphan] = access.registeredClients().filter((id) => !known.includes(id));
      expect(orphan).toBeDefined();
      await loseAttempts();
      const reports = () => problems(lines).filter((msg) => msg.startsWith('registration interrupted'));
      await expect.poll(reports).toHaveLength(1);
      expect(await handler.rows('SELECT FROM registration_attempts')).toEqual([]);
      expect(await leftovers()).toEqual([
        {
          clientName: await access.clientName(orphan ?? ''),
          clientId: null,
          realm: 'demo',
          reason: 'response-lost',
          created: expect.any(String),
        },
      ]);
      await removeAtAccess(orphan ?? '');
    },
  );

  it('fails before the identity provider is asked if the database accepts no writes', async () => {
    await handler.rows('ALTER TABLE registration_attempts RENAME TO registration_attempts_away');
    await proxy.heal();
    expect((await handler.register('permits-web')).status).toBeGreaterThanOrEqual(500);
    await repairDatabase();
    expect(proxy.calls).toEqual([]);
    await expectWhole([callback]);
  });

  it.each([
    ['the statement fails', 'NOT DEFERRABLE INITIALLY IMMEDIATE'],
    ['the commit fails', 'DEFERRABLE INITIALLY DEFERRED'],
  ])('leaves the earlier registration and deletes the new client if %s', async (_, when) => {
    const before = await stored();
    const clients = access.registeredClients();
    await refuseInserts(when);
    expect((await handler.register('permits-web')).status).toBe(500);
    expect((await stored()).oidcClientId).toBe(before.oidcClientId);
    await expect.poll(() => access.registeredClients()).toEqual(clients);
    await repairDatabase();
    await expectWhole([callback]);
  });

  it('deletes the client that it could not store as soon as the database works again', async () => {
    const clients = access.registeredClients();
    await refuseInserts('NOT DEFERRABLE INITIALLY IMMEDIATE');
    await refuseInserts('NOT DEFERRABLE INITIALLY IMMEDIATE', 'client_deletions');
    expect((await handler.register('permits-web')).status).toBe(500);
    expect(access.registeredClients()).toHaveLength(2);
    await repairDatabase();
    await expect.poll(() => access.registeredClients()).toEqual(clients);
    await expectWhole([callback]);
  });

  it.each<Fault>(['reset', 'hang', 'half a response', 'lost response', 403, 500, 502])(
    'succeeds if the earlier client cannot be deleted (%s), and the deletion is retried until it succeeds',
    async (fault) => {
      const before = await stored();
      await breakCall(fault, 3, 2);
      expect((await handler.register('permits-web')).status).toBe(200);
      const after = await stored();
      expect(after.oidcClientId).not.toBe(before.oidcClientId);
      await expect.poll(() => proxy.calls.filter((call) => call.startsWith('DELETE')).length).toBeGreaterThanOrEqual(1);
      await expectWhole([callback]);
    },
  );

  it('succeeds if the earlier client does not exist any more', async () => {
    const before = await stored();
    await removeAtAccess(before.oidcClientId);
    const lines = handler.log.lines().length;
    expect((await handler.register('permits-web')).status).toBe(200);
    await settled();
    expect(problems(lines).filter((msg) => msg.startsWith('replaced client not deleted'))).toHaveLength(1);
    await expectWhole([callback]);
  });

  it('leaves one client after concurrent registrations, the one that is stored', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => handler.register('permits-web')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await expectWhole([callback]);
  });
});

describe('an update', () => {
  it.each<[Fault, number]>([
    ['reset', 502],
    ['hang', 502],
    [400, 400],
    [403, 400],
    [429, 502],
    [500, 502],
    [502, 502],
  ])(
    'changes nothing if the identity provider refuses or fails (%s leads to %i), and a later update succeeds',
    async (fault, status) => {
      await breakCall(fault, 1);
      expect((await update(other)).status).toBe(status);
      await expectWhole([callback]);
    },
  );

  it.each<Fault>(['lost response', 'half a response'])(
    'responds with 409 if the new management token is lost (%s): the client works, and must be registered again before the next update',
    async (fault) => {
      const before = await stored();
      await breakCall(fault, 1);
      expect(await update(other)).toMatchObject({
        status: 409,
        body: { type: 'urn:formgate:problem:registration-required' },
      });
      expect(proxy.calls.map((call) => call.split(' ')[0])).toEqual(['PUT', 'GET']);
      expect(await access.accepts(before.oidcClientId, before.clientSecret)).toBe(true);
      await proxy.heal();
      // The loss of the token is recorded, so the identity provider is not called again.
      expect(await update(other)).toMatchObject({
        status: 409,
        body: { detail: expect.stringMatching(/token .* lost/) },
      });
      expect(proxy.calls).toEqual([]);
      expect((await handler.api('/clients', { token })).body).toMatchObject([{ registration: { management: 'lost' } }]);
      const clientName = await access.clientName(before.oidcClientId);
      expect((await handler.register('permits-web')).status).toBe(200);
      await settled();
      // Without its token, the old client cannot be deleted through RFC 7592, so the test deletes it directly.
      expect(access.registeredClients()).toContain(before.oidcClientId);
      expect(await leftovers()).toMatchObject([{ clientName, clientId: before.oidcClientId, reason: 'token-lost' }]);
      await removeAtAccess(before.oidcClientId);
      await expectWhole([callback]);
    },
  );

  it('responds with 502 and changes nothing while the identity provider cannot be reached', async () => {
    const before = await stored();
    await breakCall('refused', 1, Number.POSITIVE_INFINITY);
    expect((await update(other)).status).toBe(502);
    await proxy.heal();
    expect((await stored()).registrationAccessToken).toBe(before.registrationAccessToken);
    await expectWhole([callback]);
  });

  it('stores the new management token as soon as the database works again', async () => {
    await handler.rows(`
      CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused by the test'; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON client_registrations FOR EACH ROW EXECUTE FUNCTION refuse()`);
    const before = await stored();
    expect((await update(other)).status).toBe(500);
    expect((await stored()).registrationAccessToken).toBe(before.registrationAccessToken);
    await repairDatabase();
    await expect.poll(async () => (await stored()).redirectUris).toEqual([other]);
    await expectWhole([other]);
  });

  it('stores the new management token although a repeated update has found that the old token is lost', async () => {
    // Refuses to store the new token, but not that the old token is lost.
    await handler.rows(`
      CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused by the test'; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON client_registrations
        FOR EACH ROW WHEN (NEW.management = 'kept') EXECUTE FUNCTION refuse()`);
    expect((await update(other)).status).toBe(500);
    expect((await update(other)).status).toBe(409);
    expect((await stored()).management).toBe('lost');
    await repairDatabase();
    await expect.poll(async () => (await stored()).management).toBe('kept');
    await expectWhole([other]);
  });
});

describe('a leftover', () => {
  it('that still has to be deleted is listed until it is deleted', async () => {
    const { oidcClientId } = await stored();
    await breakCall(503, 3);
    expect((await handler.register('permits-web')).status).toBe(200);
    expect(await leftovers()).toMatchObject([{ clientId: oidcClientId, reason: 'deletion-pending' }]);
    await proxy.heal();
    await expect.poll(leftovers).toEqual([]);
    await expectWhole([callback]);
  });

  it('is deleted at the next registration if the token may delete it, and stays listed if it may not', async () => {
    const { oidcClientId } = await stored();
    await breakCall('lost response', 1);
    expect((await update(other)).status).toBe(409);
    await proxy.heal();
    expect((await handler.register('permits-web')).status).toBe(200);
    expect(await leftovers()).toMatchObject([{ clientId: oidcClientId, reason: 'token-lost' }]);
    const refused = `DELETE /auth/realms/demo/clients-registrations/openid-connect/${oidcClientId}`;
    expect(proxy.calls).toContain(refused);
    // From here on, the administrator's token may delete clients, as in Keycloak.
    tokenMayDelete = true;
    expect((await handler.register('permits-web')).status).toBe(200);
    await expect.poll(leftovers).toEqual([]);
    await expectWhole([callback]);
  });

  it('is never deleted by its name alone', async () => {
    await breakCall('lost response', 2);
    expect((await handler.register('permits-web')).status).toBe(502);
    await loseAttempts();
    await expect.poll(leftovers).toHaveLength(1);
    await proxy.heal();
    tokenMayDelete = true;
    const clients = access.registeredClients();
    expect((await handler.register('permits-web')).status).toBe(200);
    await settled();
    const orphan = access.registeredClients().filter((id) => clients.includes(id));
    expect(orphan).toHaveLength(1);
    expect(await leftovers()).toMatchObject([{ reason: 'response-lost' }]);
    await removeAtAccess(orphan[0] ?? '');
  });

  it('is counted in the metrics, and belongs to its tenant', async () => {
    await breakCall('lost response', 2);
    const known = access.registeredClients();
    expect((await handler.register('permits-web')).status).toBe(502);
    await loseAttempts();
    const metrics = async () => (await fetch(`${handler.metricsUrl}/metrics`)).text();
    await expect.poll(metrics).toContain('formgate_registration_leftovers{kind="client"} 1');
    const bearer = await handler.adminToken('other');
    expect((await handler.api('/clients/permits-web/leftovers', { token: bearer })).body).toEqual([]);
    for (const id of access.registeredClients()) if (!known.includes(id)) await removeAtAccess(id);
  });
});

/** Undoes a test's changes to the database. Runs after each test too, so that a failed test does not break others. */
async function repairDatabase(): Promise<void> {
  for (const table of ['client_registrations', 'client_deletions'])
    await handler.rows(`DROP TRIGGER IF EXISTS refuse ON ${table}`);
  await handler.rows('ALTER TABLE IF EXISTS registration_attempts_away RENAME TO registration_attempts');
}

async function refuseInserts(when: string, table = 'client_registrations'): Promise<void> {
  await handler.rows(`
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused by the test'; END $$;
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON ${table} ${when}
      FOR EACH ROW EXECUTE FUNCTION refuse()`);
}

async function removeAtAccess(oidcClientId: string): Promise<void> {
  await access.removeClient(oidcClientId);
}
