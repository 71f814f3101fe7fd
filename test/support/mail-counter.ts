// A mail server that keeps the recipient, subject and Message-ID of every message, but no text. A test can stop it and
// start it again.
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { listenAt, listenOnLowPort } from '../../dev/ports.ts';

export interface CountedMail {
  to: string;
  subject: string;
  messageId: string;
}

export interface MailCounter {
  /** Value for SMTP_URL. */
  url: string;
  mails: CountedMail[];
  /** Refuses connections and closes open ones. */
  shut(): Promise<void>;
  open(): Promise<void>;
  close(): Promise<void>;
}

export async function startMailCounter(): Promise<MailCounter> {
  const mails: CountedMail[] = [];
  const header = (message: string, name: string) =>
    new RegExp(`^${name}: *(.*(?:\\r?\\n[ \\t].*)*)`, 'im').exec(message)?.[1]?.replaceAll(/\s+/g, ' ') ?? '';
  const create = () => {
    const server = new SMTPServer({
      authOptional: true,
      hideSTARTTLS: true,
      disableReverseLookup: true,
      closeTimeout: 50,
      onData: (stream, { envelope }, done) => {
        text(stream).then((message) => {
          const to = envelope.rcptTo.map(({ address }) => address).join(', ');
          mails.push({ to, subject: header(message, 'Subject'), messageId: header(message, 'Message-ID') });
          done();
        }, done);
      },
    });
    server.on('error', () => undefined);
    return server;
  };
  let server = create();
  const port = await listenOnLowPort(server.server);
  const shut = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    shut,
    async open() {
      server = create();
      await listenAt(server.server, port);
    },
    close: shut,
  };
}
