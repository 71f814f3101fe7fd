// The default templates of the notices to applicants, in the language of the form: English or French. The notification
// service renders them with Handlebars from `tenant`, `event` and `subscriber`. A tenant can override them in its own
// configuration (docs/notices.md). The bodies of emails are HTML, so they use {{…}}, which escapes values. Subjects and
// text messages are plain text, so they use {{{…}}}, which leaves apostrophes as they are.
import type { Language } from '../forms/form.ts';
import { type NoticeName, type NoticeText, noticeNames } from './text-parts.ts';
import { english } from './texts-en.ts';
import { french } from './texts-fr.ts';

export interface EmailTemplate {
  subject: string;
  body: string;
}

export interface SmsTemplate {
  subject: string;
  body: string;
}

export interface NoticeTemplates {
  email: EmailTemplate;
  sms: SmsTemplate;
}

const plain = (template: string) => template.replaceAll(/\{\{(?!#|\/|else)([^{}]+)\}\}/g, '{{{$1}}}');

const greetings: Record<Language, string> = { en: 'Hello', fr: 'Bonjour' };
const signature = '{{#if tenant.name}}<p>{{tenant.name}}</p>{{/if}}';

function emailBody({ heading, paragraphs }: NoticeText, language: Language): string {
  const greeting = `<p>${greetings[language]}{{#if subscriber.addressAs}} {{subscriber.addressAs}}{{/if}},</p>`;
  return [`<div lang="${language}">`, `<h1>${heading}</h1>`, greeting, ...paragraphs, signature, '</div>'].join('\n');
}

function templatesOf(choose: (of: (text: NoticeText, language: Language) => string) => string): NoticeTemplates {
  const subject = plain(choose((text) => text.subject));
  return {
    email: { subject, body: choose(emailBody) },
    sms: { subject, body: plain(choose(({ sms }) => sms)) },
  };
}

const texts: Record<Language, Record<NoticeName, NoticeText>> = { en: english, fr: french };

/**
 * Throws if the notice has no text. TypeScript reports a missing text too, but Node.js and the tests run without type
 * checks.
 */
function textOf(name: NoticeName, language: Language): NoticeText {
  const text: NoticeText | undefined = texts[language][name];
  if (!text) throw new Error(`texts-${language}.ts has no text for the notice “${name}”.`);
  return text;
}

/**
 * A template that renders in the language of the form. Handlebars cannot compare texts, so the event contains the flag
 * `inFrench`.
 */
function inBoth(name: NoticeName): NoticeTemplates {
  return templatesOf(
    (of) =>
      `{{#if event.payload.inFrench}}${of(textOf(name, 'fr'), 'fr')}{{else}}${of(textOf(name, 'en'), 'en')}{{/if}}`,
  );
}

const forEach = (make: (name: NoticeName) => NoticeTemplates) =>
  Object.fromEntries(noticeNames.map((name) => [name, make(name)])) as Record<NoticeName, NoticeTemplates>;

/** The templates of each notice. The catalogue of events assigns them to events. */
export const noticeTemplates = forEach(inBoth);

/** The templates for tenants that write to all applicants in French (docs/notices/fr.json). */
export const frenchTemplates = forEach((name) => templatesOf((of) => of(textOf(name, 'fr'), 'fr')));
