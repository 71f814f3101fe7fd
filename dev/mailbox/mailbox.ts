// An SMTP server on loopback that stores the messages that it receives and forwards none of them.
import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server';
import type { Clock } from '../../src/service/clock.ts';
import { listenAt, listenOnLowPort } from '../ports.ts';
import { type MessageStore, openMessageStore } from './message-store.ts';

export interface Mailbox {
  /** Port of the SMTP server on 127.0.0.1. */
  port: number;
  messages: MessageStore;
  /** Calls the listener for each new message, until the returned function is called. */
  onMessage(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface MailboxOptions {
  clock: Clock;
  /** Folder for messages. Without a folder, messages are kept in memory only. */
  directory?: string;
  /** SMTP port; by default, any free port. */
  port?: number;
  /** Maximum number of messages that are kept; by default 1000. */
  limit?: number;
}

const largestMessage = 10 * 1024 * 1024;

export async function openMailbox(options: MailboxOptions): Promise<Mailbox> {
  const messages = await openMessageStore(options.directory, options.limit);
  const listeners = new Set<() => void>();
  const server = new SMTPServer({
    // Accepts any credentials, or none, so that a client can keep the settings for its real mail server.
    authOptional: true,
    onAuth: (auth, _session, done) => done(null, { user: auth.username ?? 'anyone' }),
    hideSTARTTLS: true,
    disableReverseLookup: true,
    size: largestMessage,
    onData: (stream, session, done) => {
      receive(stream, session, messages, options.clock).then(
        () => {
          done();
          for (const listener of listeners) listener();
        },
        (error: Error) => done(error),
      );
    },
  });
  server.on('error', () => undefined);
  const port = options.port ?? (await listenOnLowPort(server.server));
  if (options.port !== undefined) await listenAt(server.server, port);
  return {
    port,
    messages,
    onMessage: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => new Promise((done) => server.close(() => done())),
  };
}

async function receive(stream: SMTPServerDataStream, session: SMTPServerSession, messages: MessageStore, clock: Clock) {
  const source = await buffer(stream);
  if (stream.sizeExceeded) throw Object.assign(new Error('The message is too large.'), { responseCode: 552 });
  const parsed = await simpleParser(source);
  const { mailFrom, rcptTo } = session.envelope;
  await messages.add({
    id: randomUUID(),
    from: mailFrom ? mailFrom.address : '',
    to: rcptTo.map(({ address }) => address).join(', '),
    subject: parsed.subject ?? '',
    text: (parsed.text ?? '').trimEnd(),
    ...(typeof parsed.html === 'string' && { html: parsed.html }),
    source: source.toString('utf8'),
    received: clock().toISOString(),
  });
}
