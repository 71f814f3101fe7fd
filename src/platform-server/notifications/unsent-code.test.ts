// Tests with a real mail server that a code keeps working if its replacement certainly was not sent.
import pg from 'pg';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import {
  type Caller,
  callerOf,
  type MailServer,
  putTypes,
  startMailServer,
  subscribe,
} from '../../../test/support/notices.ts';
import { type Answered, call, startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';

const at = { channel: 'email', address: 'ana@example.org' };

let server: MailServer;
let caller: Caller;
let platform: TestPlatform;
let log: CapturedLog;
let operate: (operation: object) => Promise<Answered>;

beforeEach(async () => {
  server = await startMailServer();
  onTestFinished(() => server.close());
  log = captureLog();
  platform = await startTestPlatform({ env: { SMTP_URL: `smtp://127.0.0.1:${server.port}` }, log: log.log });
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

it.each([
  [550, '5.1.1 User unknown'],
  [550, '5.1.1 <ana@example.org>: Recipient address rejected: User unknown in local recipient table'],
  [550, 'No such user here'],
  [550, 'unknown user'],
  [552, '5.2.2 Mailbox full'],
])('an address that the mail server refuses is invalid, and the code does not count (%i %s)', async (reply, text) => {
  expect((await operate({ operation: 'send-code' })).status).toBe(200);
  const first = sentCode();
  server.refuseRecipients(reply, text);
  const errors = [{ pointer: '/address', detail: 'was refused by the mail server' }];
  expect(await operate({ operation: 'send-code' })).toMatchObject({ status: 400, body: { errors } });
  expect((await operate({ operation: 'check-code', code: first })).body).toEqual({ verified: true });
});

it.each([
  [554, '5.7.1 Relay access denied'],
  [550, 'relay not permitted'],
  [550, '5.1.8 Sender address rejected: Domain not found'],
  [550, '5.1.0 <forms@example.org>: Sender address rejected: User unknown'],
  [550, 'Sender verify failed'],
  [550, 'authentication required'],
  [550, 'Administrative prohibition'],
  [550, '5.4.1 Access denied'],
  [450, '4.2.1 Try again later'],
])(
  'a mail server that takes no mail from the platform is a failure, whatever the address (%i %s)',
  async (reply, text) => {
    server.refuseRecipients(reply, text);
    expect((await operate({ operation: 'send-code' })).status).toBe(500);
  },
);

it('the log names the SMTP reply and command with which the mail server refused a code, but not its text', async () => {
  server.refuseRecipients(554, '5.7.1 Relay access denied for canary');
  expect((await operate({ operation: 'send-code' })).status).toBe(500);
  await expect
    .poll(() => log.lines().find(({ msg }) => msg === 'request failed'))
    .toMatchObject({
      err: { cause: { message: 'the mail server did not accept the message (EENVELOPE 554 RCPT TO)' } },
    });
  expect(log.text()).not.toContain('canary');
});

it('the log says if the previous code could not be made valid again', async () => {
  const pool = new pg.Pool({ connectionString: platform.databaseUrl });
  onTestFinished(() => pool.end());
  const { rows } = await pool.query(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE tablename = 'codes'",
  );
  await pool.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`);
  for (const { name } of rows)
    await pool.query(`CREATE TRIGGER refuse BEFORE DELETE ON ${name} FOR EACH ROW EXECUTE FUNCTION refuse()`);
  refuseMail();
  expect((await operate({ operation: 'send-code' })).status).toBe(500);
  const [line] = log.lines().filter(({ msg }) => msg === 'unsent code not withdrawn');
  expect(line).toMatchObject({ level: 'warn', tenant: platform.tenant.id, err: expect.anything() });
  expect(JSON.stringify(line)).not.toContain(at.address);
});
