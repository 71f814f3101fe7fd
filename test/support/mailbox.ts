// A real SMTP server for a test, which can wait for a message.
import { openMailbox } from '../../dev/mailbox/mailbox.ts';
import type { Message } from '../../dev/mailbox/message.ts';
import { systemClock } from '../../src/service/clock.ts';

export interface TestMailbox {
  /** SMTP port on 127.0.0.1. */
  port: number;
  /** URL of the mailbox: `smtp://127.0.0.1:<port>`. */
  url: string;
  /** Returns all messages, newest first. */
  messages(): readonly Message[];
  /** Returns the newest message that matches. If no message matches, waits up to `timeoutMs` (60 s) for one. */
  waitFor(predicate: (message: Message) => boolean, timeoutMs?: number): Promise<Message>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a mailbox on `port`, or on a free port. To simulate an outage, close a mailbox and start another on the same
 * port.
 */
export async function startTestMailbox(options: { port?: number } = {}): Promise<TestMailbox> {
  // The limit is higher than usual, because a full mailbox deletes its oldest messages, and tests of long runs count
  // all messages.
  const mailbox = await openMailbox({ clock: systemClock, limit: 20_000, ...options });
  return {
    port: mailbox.port,
    url: `smtp://127.0.0.1:${mailbox.port}`,
    messages: () => mailbox.messages.all(),
    waitFor: (predicate, timeoutMs = 60_000) =>
      new Promise((found, fail) => {
        const look = () => {
          const message = mailbox.messages.all().find(predicate);
          if (!message) return;
          stop();
          clearTimeout(timer);
          found(message);
        };
        const stop = mailbox.onMessage(look);
        const timer = setTimeout(() => {
          stop();
          const subjects = mailbox.messages.all().map(({ subject }) => subject);
          fail(new Error(`No such message within ${timeoutMs} ms; there are: ${JSON.stringify(subjects)}`));
        }, timeoutMs);
        look();
      }),
    clear: () => mailbox.messages.clear(),
    close: () => mailbox.close(),
  };
}
