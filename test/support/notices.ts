// Shared by tests of notices: a mail server whose replies a test chooses, and functions that subscribe people and send
// events.
import { type ParsedMail, simpleParser } from 'mailparser';
import type pg from 'pg';
import { SMTPServer } from 'smtp-server';
import { expect } from 'vitest';
import { listenOnLowPort } from '../../dev/ports.ts';
import { call, roleToken, type TestPlatform } from './platform.ts';

/**
 * A mail server that stores messages. With `behave`, a test can make the server delay or reject messages. With
 * `refuseRecipients`, the server rejects every recipient (RCPT TO).
 */
export interface MailServer {
  port: number;
  received: ParsedMail[];
  behave(answer: (message: ParsedMail) => Promise<void> | void): void;
  refuseRecipients(responseCode: number, text: string): void;
  close(): Promise<void>;
}

export async function startMailServer(): Promise<MailServer> {
  const received: ParsedMail[] = [];
  let behaviour: (message: ParsedMail) => Promise<void> | void = () => undefined;
  let refusal: Error | undefined;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, done) => done(refusal),
    async onData(stream, _session, done) {
      try {
        const message = await simpleParser(stream);
        received.push(message);
        await behaviour(message);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
  server.on('error', () => undefined);
  const port = await listenOnLowPort(server.server);
  return {
    port,
    received,
    behave: (answer) => {
      behaviour = answer;
    },
    refuseRecipients: (responseCode, text) => {
      refusal = Object.assign(new Error(text), { responseCode });
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

export const typeId = 'updates';
export const template = {
  subject: 'Locked {{event.payload.reference}}',
  title: 'Permit',
  body: '<p>Hi {{subscriber.addressAs}}, until {{formatDate event.payload.deleteOn}}.</p>',
};
const types = {
  [typeId]: {
    id: typeId,
    name: 'Updates',
    description: 'Updates',
    channels: ['email', 'sms'],
    events: [
      { namespace: 'form-service', name: 'form-locked', templates: { email: template, sms: { body: 'Locked' } } },
    ],
  },
};

/**
 * A correlation id of 1,000 characters and 3,000 bytes, which Postgres cannot index. Its characters differ, so that
 * compression hardly makes it shorter.
 */
export const tooLongId = String.fromCharCode(
  ...Array.from({ length: 1_000 }, (_, nth) => 0x4e_00 + ((nth * 7_919) % 20_000)),
);

export interface Caller {
  platform: TestPlatform;
  url: string;
  token: string;
}

export async function callerOf(platform: TestPlatform, url = platform.url): Promise<Caller> {
  const roles = {
    'configuration-service': ['configured-service'],
    'event-service': ['event-sender'],
    'notification-service': ['subscription-app'],
  };
  return { platform, url, token: await roleToken(platform.access, roles) };
}

export const withTenant = ({ platform }: Caller) => `?tenantId=${encodeURIComponent(platform.tenant.id)}`;

export async function putTypes(
  { url, token }: Caller,
  update: Record<string, unknown> = types,
  query = '',
): Promise<void> {
  const home = `${url}/configuration/v2/configuration/platform/notification-service${query}`;
  expect(await call(home, { method: 'PATCH', token, body: { operation: 'UPDATE', update } })).toMatchObject({
    status: 200,
  });
}

export async function subscribe(
  caller: Caller,
  address: string,
  criteria?: unknown,
  changes: Record<string, unknown> = {},
): Promise<string> {
  const body = { addressAs: `Ana <${address}>`, channels: [{ channel: 'email', address }], criteria, ...changes };
  const path = `${caller.url}/subscription/v1/types/${changes.type ?? typeId}/subscriptions${withTenant(caller)}`;
  const answered = await call(path, { method: 'POST', token: caller.token, body });
  expect(answered.status).toBe(200);
  return (answered.body as { subscriberId: string }).subscriberId;
}

export async function send(caller: Caller, changes: Record<string, unknown> = {}): Promise<void> {
  const body = {
    namespace: 'form-service',
    name: 'form-locked',
    timestamp: '2026-08-20T17:00:00Z',
    tenantId: caller.platform.tenant.id,
    payload: { reference: 'A-1', deleteOn: '2026-09-04T17:00:00Z' },
    ...changes,
  };
  expect(await call(`${caller.url}/event/v1/events`, { method: 'POST', token: caller.token, body })).toMatchObject({
    status: 200,
  });
}

/** Waits until no event or delivery is pending. */
export async function settled(database: pg.Pool): Promise<void> {
  const count = async () => {
    const { rows } = await database.query<{ n: number }>(
      'SELECT ((SELECT count(*) FROM deliveries) + (SELECT count(*) FROM events) + (SELECT count(*) FROM graphile_worker.jobs))::integer AS n',
    );
    return rows[0]?.n;
  };
  await expect.poll(count, { interval: 50 }).toBe(0);
}
