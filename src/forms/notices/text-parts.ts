// Parts of the texts of notices, in the template language of the notification service.

/** The text of a notice in one language. */
export interface NoticeText {
  subject: string;
  heading: string;
  /** HTML of each paragraph. */
  paragraphs: string[];
  sms: string;
}

export const noticeNames = ['created', 'expiring', 'locked', 'unlocked', 'toDraft', 'submitted', 'deleted'] as const;
export type NoticeName = (typeof noticeNames)[number];

export const name = (path: string, otherwise: string) => `{{#if ${path}}}{{${path}.name}}{{else}}${otherwise}{{/if}}`;
const url = 'event.payload.form.formDraftUrl';
export const link = (text: string) => `{{#if ${url}}}<p><a href="{{${url}}}">${text}</a></p>{{/if}}`;
export const plainLink = `{{#if ${url}}} {{${url}}}{{/if}}`;
/** A template for a link of the warning mail. Events contain such links only if the applicant's pages are enabled. */
export const ownLink = (member: string, before: string, text: string) =>
  `{{#if event.payload.${member}}}<p>${before} <a href="{{event.payload.${member}}}">${text}</a></p>{{/if}}`;
/** The events of version 0.2.0 have no reference. */
export const reference =
  '{{#if event.payload.form.reference}}{{event.payload.form.reference}}{{else}}{{event.payload.form.id}}{{/if}}';

/**
 * A template for a preposition and a date, or for nothing if the event does not have the date. `options` are arguments
 * of the helper `formatDate`. Formgate's platform server supports all of them. The public platform uses only `format`
 * (tokens of Luxon), and always writes dates in English.
 */
export const onDate = (path: string, before: string, options: string) =>
  `{{#if ${path}}} ${before} {{formatDate ${path} ${options}}}{{/if}}`;
export const englishDate = 'timeStyle="none" format="DDD"';
export const frenchDate = 'locale="fr-CA" timeStyle="none" format="yyyy-MM-dd"';

/** The time zone in which a deadline falls on the earliest day, so that no applicant reads a day that is too late. */
export const earliestTimeZone = 'Etc/GMT+12';
export const deadline = `timeZone="${earliestTimeZone}"`;
