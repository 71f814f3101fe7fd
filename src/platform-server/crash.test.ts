// Kills processes of the platform server with SIGKILL, and checks that the next process loses nothing.
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import type pg from 'pg';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess } from '../../test/support/access.ts';
import { listenOnLoopback } from '../../test/support/loopback-server.ts';
import { call, roleToken } from '../../test/support/platform.ts';
import { type PlatformProcess, startPlatformProcess } from '../../test/support/platform-process.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { migrationsDirectory } from './start.ts';

const tenantKey = '65f0c2a9e4b0a1d2c3f4a5b6';

let access: TestAccess;
let database: TestDatabase;
let pool: pg.Pool;
let smtp: SMTPServer;
let directory: string;
/** The Message-IDs of the mails that the mail server received, in order. */
let received: (string | undefined)[];
/** Called with each message. The mail server replies when the returned promise resolves. */
let onMessage: (message: ParsedMail) => Promise<void> | void;
const servers = new Set<PlatformProcess>();

beforeAll(async () => {
  access = await startTestAccess();
  directory = await mkdtemp(join(tmpdir(), 'platform-server-'));
  const tenants = [{ id: tenantKey, name: 'Demo', realm: 'demo' }];
  await writeFile(join(directory, 'seed.json'), JSON.stringify({ tenants }));
});

beforeEach(async () => {
  received = [];
  onMessage = () => undefined;
  database = await createTestDatabase(migrationsDirectory);
  ({ pool } = database);
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    async onData(stream, _session, done) {
      const message = await simpleParser(stream);
      received.push(message.messageId);
      await onMessage(message);
      done();
    },
  });
  smtp.on('error', () => undefined);
  await listenOnLoopback(smtp.server);
});

afterEach(async () => {
  for (const server of servers) await server.kill();
  servers.clear();
  await new Promise<void>((resolve) => smtp.close(() => resolve()));
  await database.drop();
});

afterAll(async () => {
  await access.close();
  await rm(directory, { recursive: true });
});

/** Starts a platform server in a separate process. */
async function start(env: Record<string, string> = {}): Promise<PlatformProcess> {
  const address = smtp.server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const started = await startPlatformProcess({
    DATABASE_URL: database.url,
    ACCESS_SERVICE_URL: access.url,
    SMTP_URL: `smtp://127.0.0.1:${port}`,
    SEED_FILE: join(directory, 'seed.json'),
    ...env,
  });
  servers.add(started);
  return started;
}

async function tokenOf(): Promise<string> {
  return roleToken(access, {
    'configuration-service': ['configured-service', 'configuration-admin'],
    'event-service': ['event-sender'],
    'notification-service': ['subscription-app'],
  });
}

const tenantId = () => access.urns.tenant(tenantKey);
const ofTenant = () => `?tenantId=${encodeURIComponent(tenantId())}`;

async function prepare(url: string, token: string, addresses: string[]): Promise<void> {
  const events = [{ namespace: 'n', name: 'e', templates: { email: { subject: 'Notice', body: 'x' } } }];
  const update = { updates: { id: 'updates', name: 'Updates', channels: ['email'], events } };
  const home = `${url}/configuration/v2/configuration/platform/notification-service`;
  expect((await call(home, { method: 'PATCH', token, body: { operation: 'UPDATE', update } })).status).toBe(200);
  for (const address of addresses) {
    const body = { addressAs: 'Ana', channels: [{ channel: 'email', address }] };
    const path = `${url}/subscription/v1/types/updates/subscriptions${ofTenant()}`;
    expect((await call(path, { method: 'POST', token, body })).status).toBe(200);
  }
}

const send = (url: string, token: string, key: string) =>
  call(`${url}/event/v1/events`, {
    method: 'POST',
    token,
    body: {
      namespace: 'n',
      name: 'e',
      timestamp: new Date().toISOString(),
      tenantId: tenantId(),
      context: { idempotencyKey: key },
      payload: {},
    },
  });

async function settled(): Promise<void> {
  const sql = 'SELECT ((SELECT count(*) FROM events) + (SELECT count(*) FROM graphile_worker.jobs))::integer AS n';
  await expect.poll(async () => (await pool.query<{ n: number }>(sql)).rows[0]?.n, { interval: 100 }).toBe(0);
}

describe('a platform server that is killed', () => {
  it('during a delivery: the next process takes over the job and sends with the same Message-ID', async () => {
    const first = await start();
    const token = await tokenOf();
    await prepare(first.url, token, ['ana@example.org']);
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    // The mail server has received the whole message but does not reply, so the sender cannot know whether the server
    // accepted the message.
    onMessage = () => {
      arrive();
      return new Promise(() => undefined);
    };
    await send(first.url, token, 'k');
    await arrived;
    await first.kill();
    onMessage = () => undefined;

    await start();
    await settled();
    expect(received).toHaveLength(2);
    expect(received[0]).toMatch(/^<[0-9a-f]{40}@platform\.example\.org>$/);
    expect(received[1]).toBe(received[0]);
  });

  it('after it accepted an event: each subscriber still gets one notice, and a repeat adds none', async () => {
    const first = await start({ WORKER_CONCURRENCY: '1' });
    const token = await tokenOf();
    await prepare(first.url, token, ['a@example.org', 'b@example.org', 'c@example.org']);
    const { status } = await send(first.url, token, 'k');
    await first.kill();
    expect(status).toBe(200);

    const second = await start();
    expect((await send(second.url, token, 'k')).status).toBe(200);
    await settled();
    expect(new Set(received).size).toBe(3);
  });

  it('during many writes of configuration: every confirmed write is stored, and none in part', async () => {
    const first = await start();
    const token = await tokenOf();
    const home = (url: string) => `${url}/configuration/v2/configuration/n/x${ofTenant()}`;
    const answered: string[] = [];
    const writers = Array.from({ length: 40 }, async (_, n) => {
      const update = { [`k${n}`]: { n, twice: n } };
      const { status } = await call(home(first.url), { method: 'PATCH', token, body: { operation: 'UPDATE', update } });
      if (status === 200) answered.push(`k${n}`);
      if (answered.length === 10) await first.kill();
    });
    await Promise.allSettled(writers);
    expect(answered.length).toBeGreaterThanOrEqual(10);

    const second = await start();
    const { body } = await call(home(second.url), { token });
    const { configuration } = (body as { latest: { configuration: Record<string, { n: number; twice: number }> } })
      .latest;
    for (const key of answered) expect(configuration).toHaveProperty(key);
    for (const { n, twice } of Object.values(configuration)) expect(twice).toBe(n);
    await settled();
  });

  it('by SIGTERM exits with code 0, and starts again on the same database', async () => {
    const { child } = await start();
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    const again = await start();
    expect((await call(`${again.url}/health`)).body).toMatchObject({ db: true });
  });

  it('two servers that start concurrently on an empty database both serve requests', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    for (const { url } of [one, other]) expect((await call(`${url}/health`)).body).toMatchObject({ db: true });
  });
});
