// Renders the mail with a verify code. It is sent during the request and never queued, so that no code is stored.
import type { Mail } from '../mail.ts';

export function codeMail(to: { name: string; address: string }, code: string, reason: string | null | undefined): Mail {
  const greeting = to.name ? `Hello ${to.name},` : 'Hello,';
  const purpose = reason ? `${reason}\n\n` : '';
  return {
    to,
    subject: 'Your code',
    text: `${greeting}\n\n${purpose}Your code is:\n\n${code}\n\nIt works once, for 10 minutes. If you did not ask for it, you can ignore this message.\n`,
  };
}
