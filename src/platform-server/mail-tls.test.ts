// Tests TLS between the platform server and a real mail server with a certificate that is not from a public authority.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { SMTPServer } from 'smtp-server';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { createCertificate, type TestCertificate } from '../../test/support/certificate.ts';
import { listenOnLoopback } from '../../test/support/loopback-server.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { createMailer } from './mail.ts';

const trusted = getCACertificates();
afterEach(() => setDefaultCACertificates(trusted));

const mail = { to: { name: 'Ana', address: 'ana@example.org' }, subject: 'Your draft', text: 'It is saved.' };

interface MailServer {
  port: number;
  certificate: string;
  /** For each accepted message, true if it arrived over TLS. */
  accepted: boolean[];
}

async function startMailServer(options: { secure?: boolean; hideSTARTTLS?: boolean } = {}): Promise<MailServer> {
  const folder = mkdtempSync(join(tmpdir(), 'formgate-mail-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { key, certificate }: TestCertificate = createCertificate(folder);
  const accepted: boolean[] = [];
  const server = new SMTPServer({
    ...{ key, cert: certificate, authOptional: true, disableReverseLookup: true, closeTimeout: 50, ...options },
    onData: (stream, { secure }, done) => {
      stream.resume().on('end', () => {
        accepted.push(secure);
        done();
      });
    },
  });
  // A client that does not trust the certificate aborts the handshake, and the server then emits an error.
  server.on('error', () => undefined);
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: await listenOnLoopback(server.server), certificate, accepted };
}

function send(url: string) {
  const { log, lines } = captureLog();
  const mailer = createMailer({ url, from: 'Forms <forms@example.org>', log, metrics: createMetrics() });
  onTestFinished(() => mailer.close());
  return { sent: mailer.send('tenant', mail, 'notice'), lines };
}

describe.each([
  ['smtps', { secure: true }],
  ['smtp', {}],
] as const)('%s:// to a server with TLS', (scheme, options) => {
  it('sends nothing if the certificate is not trusted', async () => {
    const server = await startMailServer(options);
    await expect(send(`${scheme}://127.0.0.1:${server.port}`).sent).rejects.toThrow('did not accept the message');
    expect(server.accepted).toEqual([]);
  });

  it('sends by TLS if the operator’s authorities contain the certificate', async () => {
    const server = await startMailServer(options);
    setDefaultCACertificates([...trusted, server.certificate]);
    const { sent, lines } = send(`${scheme}://127.0.0.1:${server.port}`);
    await sent;
    expect(server.accepted).toEqual([true]);
    expect(lines()).toEqual([]);
  });

  it('warns if SMTP_URL accepts any certificate', async () => {
    const server = await startMailServer(options);
    const { sent, lines } = send(`${scheme}://127.0.0.1:${server.port}?tls.rejectUnauthorized=false`);
    await sent;
    expect(server.accepted).toEqual([true]);
    expect(lines()).toMatchObject([{ level: 'warn', msg: 'SMTP_URL accepts any certificate of the mail server' }]);
  });
});

it('smtp:// with requireTLS sends nothing to a server that offers no TLS', async () => {
  const server = await startMailServer({ hideSTARTTLS: true });
  const url = `smtp://127.0.0.1:${server.port}`;
  await expect(send(`${url}?requireTLS=true`).sent).rejects.toThrow('did not accept the message');
  await send(url).sent;
  expect(server.accepted).toEqual([false]);
});
