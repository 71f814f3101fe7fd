// Tests with a real mail server that a mail can be sent after the first attempt has failed.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SMTPServer } from 'smtp-server';
import { expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { listenOnLoopback } from '../../test/support/loopback-server.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { createMailer } from './mail.ts';

/**
 * Sends two mails. For the first mail, nodemailer fails to load, as in a process without free file descriptors. The
 * script runs in a separate process, because Vitest does not load a module again.
 */
const script = `
  import { registerHooks } from 'node:module';
  import { createMailer } from '${join(import.meta.dirname, 'mail.ts')}';
  import { createMetrics } from '${join(import.meta.dirname, '../service/operations/metrics.ts')}';
  const mailer = createMailer({ url: process.argv[1], from: 'forms@example.org', log: console, metrics: createMetrics() });
  const send = () =>
    mailer.send('tenant', { to: { name: 'Ana', address: 'ana@example.org' }, subject: 'Your draft', text: 'It is saved.' }, 'notice').then(
      () => console.log('sent'),
      (error) => console.log(error.message),
    );
  const hooks = registerHooks({
    load(module, context, next) {
      if (module.includes('/nodemailer/')) throw Object.assign(new Error('no descriptor'), { code: 'EMFILE' });
      return next(module, context);
    },
  });
  await send();
  mailer.close();
  hooks.deregister();
  await send();
  mailer.close();`;

it('mail is sent again without a restart after nodemailer could not be loaded', async () => {
  const server = new SMTPServer({ authOptional: true, hideSTARTTLS: true, disableReverseLookup: true });
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const url = `smtp://127.0.0.1:${await listenOnLoopback(server.server)}`;
  const args = ['--input-type=module', '--eval', script, url];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe('the mail server did not accept the message (EMFILE)\nsent\n');
});

it.each([
  ['forms@example.org'],
  ['Forms <forms@example.org>'],
  ['"Forms @ Town.example" <forms@example.org>'],
  ['forms@town.example <forms@example.org>'],
])('the domain of the sender %s is that of its address', (from) => {
  const mailer = createMailer({ url: 'smtp://127.0.0.1:1', from, log: captureLog().log, metrics: createMetrics() });
  expect(mailer.domain).toBe('example.org');
});
