// Sends mail by SMTP. What went wrong is told by code and reply number only: a mail server's reply quotes addresses,
// and errors end in logs and in the job table.
import { createTransport } from 'nodemailer';
import prom from 'prom-client';
import type { Metrics } from '../service/operations/metrics.ts';

export interface Mail {
  to: { name: string; address: string };
  /** Instead of the configured sender. */
  from?: string | undefined;
  subject: string;
  text: string;
  html?: string;
  /** Without angle brackets: `<local>@<domain>`. */
  messageId?: string;
}

/** A mail that was not taken. `refused`: the server answered and said no (5xx), which waiting may not change. */
export class MailError extends Error {
  readonly refused: boolean;
  /** The reply code of the server, where it answered. */
  readonly reply: number | undefined;

  constructor(cause: unknown) {
    const { code, responseCode, command } = cause as { code?: unknown; responseCode?: unknown; command?: unknown };
    const parts = [code, responseCode, command].filter((part) => typeof part === 'string' || typeof part === 'number');
    super(`the mail server did not take the message (${parts.join(' ') || 'no reason given'})`);
    this.name = 'MailError';
    this.reply = typeof responseCode === 'number' ? responseCode : undefined;
    this.refused = typeof responseCode === 'number' && responseCode >= 500 && code !== 'EAUTH';
  }
}

export interface Mailer {
  /** Resolves when the mail server has taken the message. Rejects with MailError, within 8 s. */
  send(mail: Mail): Promise<void>;
  /** What follows the @ in message ids. */
  domain: string;
  close(): void;
}

const patience = 8_000;

export function createMailer(options: { url: string; from: string; metrics: Metrics }): Mailer {
  const limits = { connectionTimeout: 5_000, greetingTimeout: 5_000, socketTimeout: 7_000, dnsTimeout: 3_000 };
  const transport = createTransport({
    ...limits,
    url: options.url,
    pool: true,
    maxConnections: 5,
    maxMessages: 100,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const sent = new prom.Counter({
    name: 'platform_mails_total',
    help: 'Mails by outcome: taken, refused (5xx) or failed',
    labelNames: ['outcome'],
    registers: [options.metrics.registry],
  });

  return {
    domain: /@([A-Za-z0-9.-]+)/.exec(options.from)?.[1] ?? 'localhost',
    async send({ to, from, subject, text, html, messageId }) {
      const message = {
        from: from ?? options.from,
        to,
        subject,
        text,
        ...(html !== undefined && { html }),
        ...(messageId !== undefined && { messageId: `<${messageId}>` }),
        headers: { 'Auto-Submitted': 'auto-generated' },
      };
      try {
        await withinPatience(transport.sendMail(message));
        sent.inc({ outcome: 'taken' });
      } catch (error) {
        const failure = new MailError(error);
        sent.inc({ outcome: failure.refused ? 'refused' : 'failed' });
        options.metrics.dependencyFailures.inc({ dependency: 'mail', kind: failure.refused ? 'refused' : 'failed' });
        throw failure;
      }
    },
    close: () => transport.close(),
  };
}

/** A message that is still under way after that may arrive all the same. */
async function withinPatience(sending: Promise<unknown>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject({ code: 'ETIMEDOUT' }), patience);
  try {
    await Promise.race([sending, promise]);
  } finally {
    clearTimeout(timer);
    sending.catch(() => undefined);
  }
}
