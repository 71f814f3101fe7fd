// Renders the mail that contains a one-time code. The mail is sent during the request and never queued, so that the
// code is never stored.
import type { Mail } from '../mail.ts';

interface CodeMailTexts {
  subject: string;
  hello: string;
  yourCode: string;
  once: string;
}

const texts = {
  en: {
    subject: 'Your code',
    hello: 'Hello',
    yourCode: 'Your code is:',
    once: 'It works once, for 10 minutes. If you did not ask for it, you can ignore this message.',
  },
  fr: {
    subject: 'Votre code',
    hello: 'Bonjour',
    yourCode: 'Votre code est :',
    once: 'Il sert une seule fois, pendant 10 minutes. Si vous ne l’avez pas demandé, ne faites rien.',
  },
} satisfies Record<string, CodeMailTexts>;

export const codeLanguages = ['en', 'fr'] as const;
export type CodeLanguage = (typeof codeLanguages)[number];

export interface CodeMail {
  to: { name: string; address: string };
  code: string;
  /** The caller's text, shown before the code. */
  reason: string | null | undefined;
  language: CodeLanguage;
}

export function codeMail({ to, code, reason, language }: CodeMail): Mail {
  const { subject, hello, yourCode, once } = texts[language];
  const greeting = to.name ? `${hello} ${to.name},` : `${hello},`;
  const purpose = reason ? `${reason}\n\n` : '';
  return { to, subject, text: `${greeting}\n\n${purpose}${yourCode}\n\n${code}\n\n${once}\n` };
}
