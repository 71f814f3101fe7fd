// The default templates of the notices to applicants, in plain English. The notification service renders them with
// Handlebars from `tenant`, `event` and `subscriber`. They contain no form data. A tenant can override them in its own
// configuration (docs/notices.md). Bodies of emails are HTML, where {{…}} escapes. Subjects and text messages are plain
// text, where {{{…}}} keeps apostrophes as they are.

export interface EmailTemplate {
  subject: string;
  title: string;
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

const name = (path: string) => `{{#if ${path}}}{{${path}.name}}{{else}}application{{/if}}`;
const plain = (template: string) => template.replaceAll(/\{\{(?!#|\/|else)([^{}]+)\}\}/g, '{{{$1}}}');

const formName = name('event.payload.form.definition');
const deletedFormName = name('event.payload.definition');
const greeting = '<p>Hello{{#if subscriber.addressAs}} {{subscriber.addressAs}}{{/if}},</p>';
const signature = '{{#if tenant.name}}<p>{{tenant.name}}</p>{{/if}}';
const link = (text: string) =>
  `{{#if event.payload.form.formDraftUrl}}<p><a href="{{event.payload.form.formDraftUrl}}">${text}</a></p>{{/if}}`;
const plainLink = '{{#if event.payload.form.formDraftUrl}} {{event.payload.form.formDraftUrl}}{{/if}}';
const onDate = (member: string) =>
  `{{#if event.payload.${member}}} on {{formatDate event.payload.${member} timeStyle="none"}}{{/if}}`;

function notice(texts: { subject: string; title: string; paragraphs: string[]; sms: string }): NoticeTemplates {
  const subject = plain(texts.subject);
  return {
    email: {
      subject,
      title: texts.title,
      body: [greeting, ...texts.paragraphs, signature].join('\n'),
    },
    sms: { subject, body: plain(texts.sms) },
  };
}

/** The templates of each notice. The catalogue of events assigns them to events. */
export const noticeTemplates = {
  created: notice({
    subject: `Your ${formName} draft is saved`,
    title: 'Draft saved',
    paragraphs: [
      `<p>We saved a draft of your ${formName}. It is not submitted yet.</p>`,
      '<p>You can come back and finish it. If you do not open it for some time, it will be locked and later deleted; we will write to you before it is deleted.</p>',
      link('Continue your draft'),
    ],
    sms: `We saved a draft of your ${formName}. It is not submitted yet.${plainLink}`,
  }),
  expiring: notice({
    subject: `Your ${formName} draft will soon be locked`,
    title: 'Draft about to be locked',
    paragraphs: [
      `<p>You have not opened your ${formName} draft for some time. It will be locked${onDate('lockOn')}.</p>`,
      '<p>To keep it, open it before then. A locked draft cannot be opened, and it is deleted{{#if event.payload.deleteOn}} on {{formatDate event.payload.deleteOn timeStyle="none"}}{{else}} some time later{{/if}}.</p>',
      link('Open your draft'),
    ],
    sms: `Your ${formName} draft will be locked${onDate('lockOn')}. Open it before then to keep it.${plainLink}`,
  }),
  locked: notice({
    subject: `Your ${formName} draft is locked`,
    title: 'Draft locked',
    paragraphs: [
      `<p>You have not opened your ${formName} draft for some time, so it is now locked. You cannot open or submit it.</p>`,
      `<p>It will be deleted${onDate('deleteOn')}, and so will the information that you entered.</p>`,
      '<p>If you still need it, ask the office that you are applying to, before that date, to unlock it.</p>',
    ],
    sms: `Your ${formName} draft is locked and will be deleted${onDate('deleteOn')}. To keep it, ask the office that you are applying to.`,
  }),
  unlocked: notice({
    subject: `Your ${formName} draft is unlocked`,
    title: 'Draft unlocked',
    paragraphs: [
      `<p>Your ${formName} draft is unlocked. You can open it again, finish it and submit it.</p>`,
      link('Continue your draft'),
    ],
    sms: `Your ${formName} draft is unlocked. You can finish it and submit it.${plainLink}`,
  }),
  toDraft: notice({
    subject: `Your ${formName} needs changes`,
    title: 'Back to draft',
    paragraphs: [
      `<p>Your ${formName} was given back to you as a draft. It is no longer submitted.</p>`,
      '<p>Make the changes that are needed, and submit it again.</p>',
      link('Open your draft'),
    ],
    sms: `Your ${formName} was given back to you as a draft. Change what is needed and submit it again.${plainLink}`,
  }),
  submitted: notice({
    subject: `We received your ${formName}`,
    title: 'Received',
    paragraphs: [
      `<p>We received your ${formName}{{#if event.timestamp}} on {{formatDate event.timestamp timeStyle="none"}}{{/if}}.</p>`,
      '<p>You do not have to do anything now. Your reference is {{event.payload.form.id}}.</p>',
      link('View what you sent'),
    ],
    sms: `We received your ${formName}. Your reference is {{event.payload.form.id}}.`,
  }),
  deleted: notice({
    subject: `Your ${deletedFormName} is deleted`,
    title: 'Deleted',
    paragraphs: [
      `<p>Your ${deletedFormName} is deleted, with the information that you entered. It cannot be brought back.</p>`,
      '<p>Your contact details are removed too: this is our last message about it. If you still want to apply, please start again.</p>',
    ],
    sms: `Your ${deletedFormName} is deleted, with the information that you entered. This is our last message about it.`,
  }),
};
