// Sends mail by SMTP. Errors contain only the error code, the SMTP reply code and the SMTP command. They do not contain
// the text of the reply, which could quote addresses, because errors are written to logs and to the job table.
import type { Transporter } from 'nodemailer';
import { createRequestQueue } from '../service/limits/request-queue.ts';
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
 * the reply is about the recipient.
 */
export class MailError extends Error {
  readonly refused: boolean;
  readonly refusedRecipient: boolean;
  /** True if the server got the whole message, but did not reply. It then may deliver the message (RFC 1047). */
  readonly mayHaveSent: boolean;
  /** The SMTP reply code, if the server replied. */
  readonly reply: number | undefined;

  constructor(cause: unknown, isHandedOver = false) {
    const { code, responseCode, command, response } = cause as Record<string, unknown>;
    super(`the mail server did not accept the message (${failureFacts(cause)})`);
    this.name = 'MailError';
    this.reply = typeof responseCode === 'number' ? responseCode : undefined;
    this.refused = typeof responseCode === 'number' && responseCode >= 500 && code !== 'EAUTH';
    this.refusedRecipient = this.refused && command === 'RCPT TO' && isAboutRecipient(String(response));
    this.mayHaveSent = isHandedOver && this.reply === undefined;
  }
}

/**
 * Returns the code, the SMTP reply code and the SMTP command of an error of nodemailer, such as `EAUTH 535 AUTH PLAIN`
 * or `ECONNREFUSED CONN`.
 */
export function failureFacts(cause: unknown): string {
  // For an error of the network or of TLS, `code` only names the step that failed.
  const { code, originalCode = code, responseCode, command } = cause as Record<string, unknown>;
  const facts = [originalCode, responseCode, command];
  return facts.filter((fact) => typeof fact === 'string' || typeof fact === 'number').join(' ') || 'no reason given';
}

/**
 * True if a 5xx reply to RCPT TO is about the recipient. Mail servers also use this reply if they relay no mail for the
 * platform, or do not accept the sender. The enhanced status code (RFC 3463) names the cause: 5.1 is a bad address,
 * except 5.1.7 and 5.1.8, which are about the sender; 5.2 is a mailbox that cannot receive mail. For a reply with 5.1.0
 * or without an enhanced status code, the text must not name another cause.
 */
function isAboutRecipient(response: string): boolean {
  if (/relay|sender|authenticat|prohibit|black|block/i.test(response)) return false;
  const status = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1];
  return status === undefined || /^5\.(?:1\.(?![78]$)|2\.)/.test(status);
}

/** Codes are awaited by a person. Notices are sent by jobs, so they can wait longer for a slow mail server. */
export type MailKind = 'code' | 'notice';

export interface Mailer {
  /**
   * Resolves when the mail server has accepted the message. Rejects after the limits of {@link MailTimes}: with
   * MailError, or with Problem `busy` if too many mails of the tenant, or of all tenants, are being sent. A late mail
   * is dropped if the mail server does not have all of it. Otherwise, the server may still deliver it.
   */
  send(tenant: string, mail: Mail, kind: MailKind): Promise<void>;
  /** The address of the configured sender, without a name. */
  address: string;
  /** The domain of the address. Message ids use this domain too. */
  domain: string;
  close(): void;
}

/** Time limits in milliseconds. */
export interface MailTimes {
  /** For the wait for a connection. */
  wait: number;
  /**
   * For sending a mail over a connection. For a code, the sum of both limits is below the timeout of the form service's
   * calls. The limit for a notice is long, because a mail server may check a message before it replies, and a retry
   * after a lost reply sends the notice again.
   */
  send: Record<MailKind, number>;
}

const ownTimes: MailTimes = { wait: 3_000, send: { code: 5_000, notice: 60_000 } };
/** Connections to the mail server: in total, and for notices. The others stay free for codes. */
const connections = { total: 5, notices: 3 };

/**
 * Shares the connections between the tenants. Without this queue, nodemailer would queue any number of mails, and the
 * mails of one tenant would delay those of all others.
 */
function createMailQueue({ metrics }: MailerOptions, total: number, perTenant: number, waitMs: number) {
  return createRequestQueue('mails', metrics, {
    slots: { total, perTenant, perMember: perTenant },
    waiting: { total: 200, perTenant: 50, perMember: 50 },
    waitMs,
    detail: 'Too many mails are waiting for the mail server. Try again.',
  });
}

/** A message for nodemailer. */
interface Message {
  signal?: AbortSignal;
  /** Called when the mail server has been sent the whole content. */
  onHandedOver?(): void;
}

/**
 * Returns a function that sends a message when a connection is free. After the time limit, nodemailer removes the
 * message from its own queue, or closes its connection.
 */
function createTurns(send: (message: Message) => Promise<void>, options: MailerOptions) {
  const { wait, send: limits } = options.times ?? ownTimes;
  const all = createMailQueue(options, connections.total, 3, wait);
  const notices = createMailQueue(options, connections.notices, 2, wait);
  return (tenant: string, message: object, kind: MailKind): Promise<void> => {
    const requester = { tenant, member: tenant };
    const turn = () => all.run(requester, () => sendWithin(limits[kind], send, message));
    return kind === 'notice' ? notices.run(requester, turn) : turn();
  };
}

/** Sends a message. Throws MailError, also after the time limit. */
async function sendWithin(limit: number, send: (message: Message) => Promise<void>, message: object): Promise<void> {
  const signal = AbortSignal.timeout(limit);
  let isHandedOver = false;
  const onHandedOver = () => {
    isHandedOver = true;
  };
  try {
    await send({ ...message, signal, onHandedOver });
  } catch (error) {
    const cause = signal.aborted ? Object.assign(new Error('no reply in time'), { code: 'ETIMEDOUT' }) : error;
    throw new MailError(cause, isHandedOver);
  }
}

export interface MailerOptions {
  url: string;
  from: string;
  log: Logger;
  metrics: Metrics;
  /** Only tests set shorter times. */
  times?: MailTimes;
}

/** Nodemailer's settings of a connection to the mail server. */
export function smtpSettings(url: string) {
  return {
    url,
    ...{ connectionTimeout: 5_000, greetingTimeout: 5_000, dnsTimeout: 3_000 },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

export function createMailer(options: MailerOptions): Mailer {
  if (acceptsAnyCertificate(options.url))
    options.log.warn({ dependency: 'mail' }, 'SMTP_URL accepts any certificate of the mail server');
  const settings = {
    ...smtpSettings(options.url),
    // Longer than the time limit for sending a notice, which ends a silent connection earlier while it sends a mail.
    socketTimeout: 70_000,
    idleTimeout: 7_000,
    pool: true,
    // The queue limits the mails that are sent at a time. The further connections replace idle ones that wait for the
    // reply to QUIT, which a lost mail server never sends.
    maxConnections: 2 * connections.total,
    maxMessages: 100,
  };
  let opened: Promise<Transporter> | undefined;
  // Nodemailer is loaded when the first mail is sent, because loading it takes a tenth of the startup time.
  const open = async () => reportHandover((await import('nodemailer')).createTransport(settings));
  const send = async (message: Message) => {
    opened ??= open().catch((error: unknown) => {
      // The next mail then tries to load nodemailer again.
      opened = undefined;
      throw error;
    });
    await (await opened).sendMail(message);
  };
  const sendInTurn = createTurns(send, options);
  const { mails: sent } = createMailMetrics(options.metrics);

  const address = options.from.slice(options.from.lastIndexOf('<') + 1).replace('>', '');
  const [, domain = 'localhost'] = address.split('@');
  return {
    ...{ address, domain },
    async send(tenant, { to, from, subject, text, html, messageId }, kind) {
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
        await sendInTurn(tenant, message, kind);
        sent.inc({ outcome: 'taken' });
      } catch (error) {
        if (!(error instanceof MailError)) throw error;
        const outcome = error.refused ? 'refused' : 'failed';
        sent.inc({ outcome });
        options.metrics.dependencyFailures.inc({ dependency: 'mail', kind: outcome });
        throw error;
      }
    },
    close: () =>
      void opened?.then(
        (transport) => transport.close(),
        () => undefined,
      ),
  };
}

/** Makes a transport call `onHandedOver` of each message when the whole content was passed to the connection. */
function reportHandover(transport: Transporter): Transporter {
  return transport.use('stream', ({ data, message }, done) => {
    const { onHandedOver } = data as Message;
    message.processFunc((content) => (onHandedOver ? content.once('end', onHandedOver) : content));
    done();
  });
}

/**
 * True if the URL turns off the check of the mail server's certificate. Nodemailer reads TLS options from the query of
 * the URL.
 */
const acceptsAnyCertificate = (url: string) => new URL(url).searchParams.get('tls.rejectUnauthorized') === 'false';
