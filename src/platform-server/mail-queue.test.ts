// Tests with a real mail server that a tenant's mails do not delay those of other tenants, and that a mail that was not
// sent in time is never sent.
import { SMTPServer } from 'smtp-server';
import { expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { listenOnLoopback } from '../../test/support/loopback-server.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { createMailer, MailError, type MailTimes } from './mail.ts';

/** Starts a mail server that, while `isSlow`, does not reply to RCPT for addresses that begin with `slow`. */
async function startServer() {
  const state = { isSlow: true, received: [] as string[] };
  const server = new SMTPServer({
    ...{ authOptional: true, hideSTARTTLS: true, disableReverseLookup: true },
    // By default, the close would wait 30 s for the connections whose RCPT has no reply.
    closeTimeout: 100,
    onRcptTo({ address }, _session, answer) {
      if (!state.isSlow || !address.startsWith('slow')) answer();
    },
    onData(stream, { envelope }, answer) {
      stream.resume();
      stream.on('end', () => {
        state.received.push(...envelope.rcptTo.map(({ address }) => address));
        answer();
      });
    },
  });
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { state, url: `smtp://127.0.0.1:${await listenOnLoopback(server.server)}` };
}

function startMailer(url: string, times: MailTimes) {
  const metrics = createMetrics('platform-server');
  const mailer = createMailer({ url, from: 'Forms <forms@example.org>', log: captureLog().log, metrics, times });
  onTestFinished(() => mailer.close());
  return (tenant: string, name: string) =>
    mailer.send(tenant, { to: { name, address: `${name}@example.org` }, subject: 'Your code', text: 'K2TPX4' }, 'code');
}

it('a tenant with many slow mails leaves connections to others, and further mails of it get 503 busy', async () => {
  const { state, url } = await startServer();
  const send = startMailer(url, { wait: 60_000, send: { code: 60_000, notice: 60_000 } });
  const slow = Array.from({ length: 60 }, (_, nth) => send('loud', `slow${nth}`));
  const refused = (await Promise.all(slow.slice(53).map((mail) => mail.catch((error: unknown) => error)))) as object[];
  for (const error of refused) expect(error).toMatchObject({ slug: 'busy', headers: { 'Retry-After': '5' } });
  await send('quiet', 'fast');
  expect(state.received).toEqual(['fast@example.org']);
  void Promise.allSettled(slow);
});

it('a mail that was not sent in time is never sent, also not when the mail server replies again', async () => {
  const { state, url } = await startServer();
  const send = startMailer(url, { wait: 500, send: { code: 1_000, notice: 1_000 } });
  const results = await Promise.allSettled(Array.from({ length: 20 }, (_, nth) => send('loud', `slow${nth}`)));
  const reasons = results.map((result) => (result.status === 'rejected' ? result.reason : undefined));
  expect(reasons.filter((reason) => reason instanceof MailError)).toHaveLength(3);
  expect(reasons.filter((reason) => reason?.slug === 'busy')).toHaveLength(17);
  expect(String(reasons[0])).toContain('ETIMEDOUT');
  state.isSlow = false;
  for (let nth = 0; nth < 20; nth += 1) await send('loud', `later${nth}`);
  expect(state.received.filter((address) => address.startsWith('slow'))).toEqual([]);
});
