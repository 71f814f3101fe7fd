// Kills a token handler process with SIGKILL at each step of a registration and of an update. Checks that another
// replica completes the work.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { endWithThisProcess, failedStart, hasEnded, keepErrors } from '../../../test/support/child-processes.ts';
import { type FaultProxy, startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { call, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
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
const keepCompiled = import.meta.resolve('../../../test/support/keep-compiled.ts');

let access: TracedAccess;
let proxy: FaultProxy;
let platform: TestPlatform;
/** A token handler whose upkeep (background work) is paused, so that it does not complete the killed process's work. */
let handler: TestTokenHandler;
let token: string;
let victim: { child: ChildProcess; url: string };
let before: StoredRegistration;
let release: (() => Promise<void>) | undefined;

beforeAll(async () => {
  access = await startTracedAccess();
  proxy = await startFaultProxy(access.url.replace('/auth', ''), {
    uncounted: (path) => path.includes('/realms/core/'),
  });
  platform = await startTestPlatform({ access });
  handler = await startTestTokenHandler({ platform, pace: { poll: 3_600_000 } });
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
  for (const id of access.registeredClients()) await access.removeClient(id);
  await handler.rows(
    'TRUNCATE client_registrations, client_deletions, client_events, registration_attempts, client_leftovers',
  );
  expect((await handler.register('permits-web')).status).toBe(200);
  before = await stored();
  victim = await startVictim();
  // Fills the caches, so that all later calls to the identity provider belong to the tested step.
  await call(`${victim.url}/token-handler/v1/clients`, { token });
  await proxy.heal();
});

afterEach(async () => {
  await release?.();
  release = undefined;
  await kill();
  await proxy.heal();
});

async function startVictim() {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [`--import=${keepCompiled}`, join(import.meta.dirname, '../main.ts')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, NODE_COMPILE_CACHE, ...handler.env, ACCESS_SERVICE_URL: `${proxy.url}/auth` },
  });
  endWithThisProcess(child);
  const errors = keepErrors(child);
  const exit = once(child, 'exit');
  let output = '';
  for await (const line of createInterface(child.stdout)) {
    output += `${line}\n`;
    const { msg, port } = JSON.parse(line);
    if (msg !== 'listening') continue;
    child.stdout.resume();
    return { child, url: `http://127.0.0.1:${port}` };
  }
  await exit;
  throw failedStart('token handler', child, output, errors());
}

async function kill(): Promise<void> {
  const { child } = victim;
  if (hasEnded(child)) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Sends a request to the process that is going to be killed, and ignores the missing response. */
function ask(method: string, body: unknown): void {
  call(`${victim.url}/token-handler/v1/clients/permits-web`, { method, token, body }).catch(() => undefined);
}

const calls = (method: string) => () => proxy.calls.filter((line) => line.startsWith(method)).length;

async function stored(): Promise<StoredRegistration> {
  const [row] = await handler.rows<StoredRegistration>(`SELECT ${registrationColumns} FROM client_registrations`);
  if (!row) throw new Error('nothing is registered');
  return openRegistration(createKeyRing(handler.config.KEY_RING), row);
}

/**
 * Starts a replica whose clock is ten minutes ahead, and waits until it has completed the killed process's work.
 * Returns the replica's warnings about clients.
 */
async function recover(): Promise<string[]> {
  const log = captureLog();
  const replica = await handler.startReplica({ clock: () => new Date(Date.now() + 600_000), log });
  const left = () =>
    handler.rows(
      'SELECT FROM client_deletions UNION ALL SELECT FROM client_events UNION ALL SELECT FROM registration_attempts',
    );
  await expect.poll(left).toEqual([]);
  await replica.close();
  return log.lines().flatMap(({ level, client, msg }) => (level === 'warn' && client ? [String(msg)] : []));
}

/** Blocks writes to `client_registrations` until the returned function is called. Reads are not blocked. */
async function holdWrites(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: handler.databaseUrl });
  await client.connect();
  // `release` is set first, so that the lock of a failed test does not block the next test.
  release = () => client.end();
  await client.query('BEGIN; LOCK TABLE client_registrations IN SHARE MODE');
  return release;
}

const waitingForLock = () =>
  handler.rows(
    'SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT granted AND datname = current_database()',
  );

const works = ({ oidcClientId, clientSecret }: StoredRegistration) => access.accepts(oidcClientId, clientSecret);
const leftovers = async () => (await handler.api('/clients/permits-web/leftovers', { token })).body;
const update = (uri: string) =>
  handler.api('/clients/permits-web', { method: 'PUT', token, body: { redirectUris: [uri] } });

describe('a process that is killed during a registration', () => {
  it('before the identity provider gets the request leaves the old registration working and no other client', async () => {
    await proxy.break('hang', { at: 2 });
    ask('POST', { registrationToken });
    await expect.poll(calls('POST')).toBe(1);
    await kill();
    expect(await recover()).toEqual([expect.stringMatching(/^registration interrupted/)]);
    expect(access.registeredClients()).toEqual([before.oidcClientId]);
    expect(await works(await stored())).toBe(true);
    expect((await update(other)).status).toBe(200);
  });

  it('before the new client is stored leaves the old registration working and an unusable client, which the log reports', async () => {
    const letWrite = await holdWrites();
    ask('POST', { registrationToken });
    await expect.poll(async () => (await waitingForLock()).length).toBe(1);
    await kill();
    await letWrite();
    expect(await recover()).toEqual([expect.stringMatching(/^registration interrupted/)]);
    expect((await stored()).oidcClientId).toBe(before.oidcClientId);
    expect(await works(before)).toBe(true);
    expect(access.registeredClients()).toHaveLength(2);
    const name = expect.stringMatching(/^permits-web \(registration [0-9a-f-]{36}\)$/);
    expect(await leftovers()).toMatchObject([{ clientName: name, clientId: null, reason: 'response-lost' }]);
    expect((await update(other)).status).toBe(200);
  });

  it('before the old client is deleted leaves the new registration working, and another replica deletes the old client and sends the event', async () => {
    await proxy.break('hang', { at: 3 });
    ask('POST', { registrationToken });
    await expect.poll(calls('DELETE')).toBe(1);
    await kill();
    expect(await recover()).toEqual([]);
    const after = await stored();
    expect(after.oidcClientId).not.toBe(before.oidcClientId);
    expect(await works(after)).toBe(true);
    expect(await works(before)).toBe(false);
    expect(access.registeredClients()).toEqual([after.oidcClientId]);
  });
});

describe('a process that is killed during an update', () => {
  it('before the identity provider gets the request changes nothing, and the client can be updated', async () => {
    await proxy.break('hang', { at: 1 });
    ask('PUT', { redirectUris: [other] });
    await expect.poll(calls('PUT')).toBe(1);
    await kill();
    expect(await stored()).toEqual(before);
    await expect.poll(() => update(other)).toMatchObject({ status: 200 });
    expect(await works(await stored())).toBe(true);
  });

  it('before the new management token is stored leaves the client working with the new redirect URIs, and it must be registered again before the next update', async () => {
    const letWrite = await holdWrites();
    ask('PUT', { redirectUris: [other] });
    await expect.poll(async () => (await waitingForLock()).length).toBe(1);
    await kill();
    await letWrite();
    expect(await stored()).toEqual(before);
    expect(await works(before)).toBe(true);
    expect(await update(callback)).toMatchObject({
      status: 409,
      body: { type: 'urn:formgate:problem:registration-required' },
    });
    expect((await handler.register('permits-web')).status).toBe(200);
    expect((await update(callback)).status).toBe(200);
    expect(await works(await stored())).toBe(true);
  });
});
