// Sends mail by SMTP. Errors contain only the error code, the SMTP reply code and the SMTP command. They do not contain
// the text of the reply, which could quote addresses, because errors are written to logs and to the job table.
import type { Transporter } from 'nodemailer';
import { Problem } from '../service/http/problem.ts';
import { createFairQueue } from '../service/limits/fair-queue.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createMailMetrics } from './mail-metrics.ts';

export interface Mail {
  to: { name: string; address: string };
  /** A sender address that replaces the configured one. */
  from?: string | undefined;
  subject: string;
  text: string;
  html?: string;
  /** The Message-ID: `<local>@<domain>`, without angle brackets. */
  messageId?: string;
}

/**
 * Thrown if the mail server did not accept the mail. `refused` is true after a 5xx reply to any command except the
 * login. A retry then probably gets the same reply. `refusedRecipient` is true if that command named the recipient, and
 * the reply does not have the enhanced status 5.7 (RFC 3463: security or policy). A server that relays no mail for the
 * platform replies with 5.7, whatever the recipient.
 */
export class MailError extends Error {
  readonly refused: boolean;
  readonly refusedRecipient: boolean;
  /** The SMTP reply code, if the server replied. */
  readonly reply: number | undefined;

  constructor(cause: unknown) {
    const { code, responseCode, command, response } = cause as Record<string, unknown>;
    const parts = [code, responseCode, command].filter((part) => typeof part === 'string' || typeof part === 'number');
    super(`the mail server did not accept the message (${parts.join(' ') || 'no reason given'})`);
    this.name = 'MailError';
    this.reply = typeof responseCode === 'number' ? responseCode : undefined;
    this.refused = typeof responseCode === 'number' && responseCode >= 500 && code !== 'EAUTH';
    this.refusedRecipient = this.refused && command === 'RCPT TO' && !/^\d{3}[ -]5\.7\./.test(String(response));
  }
}

export interface Mailer {
  /**
   * Resolves when the mail server has accepted the message. Rejects within 8 s: with MailError, or with Problem `busy`
   * if too many mails of the tenant, or of all tenants, are being sent. A mail that was not sent in time is dropped.
   */
  send(tenant: string, mail: Mail): Promise<void>;
  /** The domain of the configured sender. Message ids use this domain too. */
  domain: string;
  close(): void;
}

/** Time limits in milliseconds. */
export interface MailTimes {
  /** For the wait for a connection. */
  wait: number;
  /** For sending a mail over a connection. The sum of both limits is below the timeout of the form service's calls. */
  send: number;
}

const ownTimes: MailTimes = { wait: 3_000, send: 5_000 };
/** Connections to the mail server. */
const connections = 5;

/**
 * Shares the connections between the tenants. Without this queue, nodemailer would queue any number of mails, and the
 * mails of one tenant would delay those of all others.
 */
function createMailQueue({ metrics }: Pick<MailerOptions, 'metrics'>, waitMs: number) {
  return createFairQueue({
    slots: { total: connections, perTenant: 3, perMember: 3 },
    waiting: { total: 200, perTenant: 50, perMember: 50 },
    waitMs,
    detail: 'Too many mails are waiting for the mail server. Try again.',
    retryAfterSeconds: 5,
    onRefused: (reason) => metrics.queueRefusals.inc({ queue: 'mails', reason }),
  });
}

/**
 * Returns a function that sends a message when a connection is free. After the time limit, nodemailer removes the
 * message from its own queue.
 */
function createTurns(send: (message: object) => Promise<void>, { metrics, times = ownTimes }: MailerOptions) {
  const queue = createMailQueue({ metrics }, times.wait);
  return (tenant: string, message: object): Promise<void> =>
    queue.run({ tenant, member: tenant }, async () => {
      const signal = AbortSignal.timeout(times.send);
      try {
        await send({ ...message, signal });
      } catch (error) {
        throw signal.aborted ? Object.assign(new Error('no reply in time'), { code: 'ETIMEDOUT' }) : error;
      }
    });
}

export interface MailerOptions {
  url: string;
  from: string;
  log: Logger;
  metrics: Metrics;
  /** Only tests set shorter times. */
  times?: MailTimes;
}

export function createMailer(options: MailerOptions): Mailer {
  if (acceptsAnyCertificate(options.url))
    options.log.warn({ dependency: 'mail' }, 'SMTP_URL accepts any certificate of the mail server');
  const limits = { connectionTimeout: 5_000, greetingTimeout: 5_000, socketTimeout: 7_000, dnsTimeout: 3_000 };
  const settings = {
    ...limits,
    url: options.url,
    pool: true,
    maxConnections: connections,
    maxMessages: 100,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  let opened: Promise<Transporter> | undefined;
  // Nodemailer is loaded when the first mail is sent, because loading it takes a tenth of the startup time.
  const open = async () => (await import('nodemailer')).createTransport(settings);
  const send = async (message: object) => {
    opened ??= open().catch((error: unknown) => {
      // The next mail then tries to load nodemailer again.
      opened = undefined;
      throw error;
    });
    await (await opened).sendMail(message);
  };
  const sendInTurn = createTurns(send, options);
  const { mails: sent } = createMailMetrics(options.metrics);

  return {
    domain: /@([A-Za-z0-9.-]+)/.exec(options.from)?.[1] ?? 'localhost',
    async send(tenant, { to, from, subject, text, html, messageId }) {
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
        await sendInTurn(tenant, message);
        sent.inc({ outcome: 'taken' });
      } catch (error) {
        if (error instanceof Problem) throw error;
        const failure = new MailError(error);
        sent.inc({ outcome: failure.refused ? 'refused' : 'failed' });
        options.metrics.dependencyFailures.inc({ dependency: 'mail', kind: failure.refused ? 'refused' : 'failed' });
        throw failure;
      }
    },
    close: () =>
      void opened?.then(
        (transport) => transport.close(),
        () => undefined,
      ),
  };
}

/**
 * True if the URL turns off the check of the mail server's certificate. Nodemailer reads TLS options from the query of
 * the URL.
 */
const acceptsAnyCertificate = (url: string) => new URL(url).searchParams.get('tls.rejectUnauthorized') === 'false';
