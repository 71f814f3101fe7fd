// Tests with a real mail server that a code keeps working if its replacement certainly was not sent.
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import {
  type Caller,
  callerOf,
  type MailServer,
  putTypes,
  startMailServer,
  subscribe,
} from '../../../test/support/notices.ts';
import { type Answered, call, startTestPlatform } from '../../../test/support/platform.ts';

const at = { channel: 'email', address: 'ana@example.org' };

let server: MailServer;
let caller: Caller;
let operate: (operation: object) => Promise<Answered>;

beforeEach(async () => {
  server = await startMailServer();
  onTestFinished(() => server.close());
  const platform = await startTestPlatform({ env: { SMTP_URL: `smtp://127.0.0.1:${server.port}` } });
  onTestFinished(() => platform.close());
  caller = await callerOf(platform);
  await putTypes(caller);
  const id = await subscribe(caller, at.address);
  const url = `${platform.url}/subscription/v1/subscribers/${id}?tenantId=${encodeURIComponent(platform.tenant.id)}`;
  operate = (operation) => call(url, { method: 'POST', token: caller.token, body: { ...at, ...operation } });
});

const refuseMail = () =>
  server.behave(() => {
    throw Object.assign(new Error('refused'), { responseCode: 550 });
  });
const sentCode = () => /^[A-Z0-9]{6}$/m.exec(server.received.at(-1)?.text ?? '')?.[0] ?? '';

it('a code still works after the mail server has refused a later one', async () => {
  expect((await operate({ operation: 'send-code' })).status).toBe(200);
  const first = sentCode();
  refuseMail();
  expect((await operate({ operation: 'send-code' })).status).toBe(500);
  expect((await operate({ operation: 'check-code', code: sentCode() })).body).toEqual({ verified: false });
  expect((await operate({ operation: 'check-code', code: first })).body).toEqual({ verified: true });
});

it('a code that the mail server has refused does not count as sent', async () => {
  refuseMail();
  expect((await operate({ operation: 'send-code' })).status).toBe(500);
  expect((await operate({ operation: 'check-code', code: sentCode() })).status).toBe(400);
});
