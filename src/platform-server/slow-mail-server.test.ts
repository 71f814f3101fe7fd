// Tests with a real mail server that delivers each mail, but replies late or never.
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { testServiceSecret } from '../../test/support/access.ts';
import { captureLog } from '../../test/support/captured-log.ts';
import {
  callerOf,
  type MailServer,
  putTypes,
  send,
  settled,
  startMailServer,
  subscribe,
  typeId,
} from '../../test/support/notices.ts';
import { call, startTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { createPlatform } from '../platform/platform.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { createUrns } from '../service/urn.ts';
import { createMailer } from './mail.ts';

const address = 'ana@example.org';

async function startServer(behaviour: Parameters<MailServer['behave']>[0]): Promise<MailServer> {
  const server = await startMailServer();
  onTestFinished(() => server.close());
  server.behave(behaviour);
  return server;
}

async function startPlatform(server: MailServer): Promise<{ platform: TestPlatform; database: pg.Pool }> {
  const platform = await startTestPlatform({ env: { SMTP_URL: `smtp://127.0.0.1:${server.port}` } });
  const database = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
  onTestFinished(async () => {
    await database.end();
    await platform.close();
  });
  return { platform, database };
}

/** Replies after the limit for codes. */
const replyLate = () => new Promise<void>((resolve) => setTimeout(resolve, 6_000));
it('a mail server that needs more than 5 s to accept a mail delivers a notice once', async () => {
  const server = await startServer(replyLate);
  const { platform, database } = await startPlatform(server);
  const caller = await callerOf(platform);
  await putTypes(caller);
  await subscribe(caller, address);
  await send(caller);
  await expect
    .poll(
      async () => {
        // Makes retries due immediately.
        await database.query('UPDATE graphile_worker._private_jobs SET run_at = now() WHERE locked_at IS NULL');
        return (await database.query('SELECT FROM deliveries')).rowCount;
      },
      { interval: 200, timeout: 60_000 },
    )
    .toBe(0);
  await settled(database);
  expect(server.received).toHaveLength(1);
});

it('a code whose mail the mail server accepts too late is not reported as unsent, and works', async () => {
  const server = await startServer(replyLate);
  const { platform } = await startPlatform(server);
  const caller = await callerOf(platform);
  await putTypes(caller);
  const id = await subscribe(caller, address);
  const url = `${platform.url}/subscription/v1/subscribers/${id}?tenantId=${encodeURIComponent(platform.tenant.id)}`;
  const operate = (body: object) =>
    call(url, { method: 'POST', token: caller.token, body: { channel: 'email', address, ...body } });
  expect(await operate({ operation: 'send-code' })).toMatchObject({ status: 504 });
  const code = /^[A-Z0-9]{6}$/m.exec(server.received[0]?.text ?? '')?.[0];
  expect(await operate({ operation: 'check-code', code })).toMatchObject({ status: 200, body: { verified: true } });
});

it('slow notices leave connections to codes', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const server = await startServer(({ subject }) => (subject === 'Notice' ? held : undefined));
  const mailer = createMailer({
    ...{ url: `smtp://127.0.0.1:${server.port}`, from: 'forms@example.org' },
    ...{ log: captureLog().log, metrics: createMetrics('platform-server') },
    times: { wait: 60_000, send: { code: 60_000, notice: 60_000 } },
  });
  onTestFinished(() => mailer.close());
  const to = { name: 'Ana', address };
  const notices = Array.from({ length: 10 }, (_, nth) =>
    mailer.send(`tenant${nth}`, { to, subject: 'Notice', text: 'It is saved.' }, 'notice'),
  );
  await expect.poll(() => server.received.length).toBe(3);
  await mailer.send('tenant', { to, subject: 'Code', text: 'K2TPX4' }, 'code');
  expect(server.received.map(({ subject }) => subject)).toEqual(['Notice', 'Notice', 'Notice', 'Code']);
  release();
  await Promise.all(notices);
});

it('the codes of a tenant that the mail server does not accept in time stop no calls for other tenants', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const server = await startServer(() => held);
  const { platform } = await startPlatform(server);
  const urns = createUrns('urn:example');
  const clientId = urns.service('form-service');
  const { notifications, close } = createPlatform({
    ...{ service: 'form-service', urns, metrics: createMetrics(), log: captureLog().log, env: {} },
    config: {
      ...{ ACCESS_SERVICE_URL: platform.access.url, DIRECTORY_URL: platform.directoryUrl },
      ...{ CLIENT_ID: clientId, CLIENT_SECRET: testServiceSecret(clientId) },
      ...{ PLATFORM_CACHE_TTL: 60_000, PLATFORM_TIMEOUT: 10_000 },
    },
  });
  onTestFinished(close);
  const caller = await callerOf(platform);
  await putTypes(caller);
  const addresses = Array.from({ length: 40 }, (_, nth) => `ana${nth}@example.org`);
  const ids = await Promise.all(addresses.map((one) => subscribe(caller, one)));
  const sends = ids.map((subscriberId, nth) => {
    const to = { tenantId: platform.tenant.id, subscriberId, channel: 'email', address: addresses[nth] ?? '' };
    return notifications.sendCode({ ...to, reason: 'Use this code.' }).catch(({ kind }) => kind);
  });
  const kinds = await Promise.all(sends);
  expect(kinds.filter((kind) => kind === 'busy').length).toBeGreaterThan(30);
  const { subscriberId } = await notifications.subscribe({
    ...{ tenantId: platform.otherTenant.id, typeId, addressAs: 'Bo', criteria: {} },
    channels: [{ channel: 'email', address: 'bo@example.org' }],
  });
  expect(subscriberId).not.toBe('');
  release();
});
