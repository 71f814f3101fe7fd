// The texts of the notices in English.
import {
  deadline,
  englishDate,
  link,
  type NoticeName,
  type NoticeText,
  name,
  onDate,
  ownLink,
  plainLink,
  reference,
} from './text-parts.ts';

const form = name('event.payload.form.definition', 'application');
const deletedForm = `${name('event.payload.definition', 'application')}{{#if event.payload.wasDraft}} draft{{/if}}`;
const on = (member: string) => onDate(`event.payload.${member}`, 'on', `${englishDate} ${deadline}`);

export const english: Record<NoticeName, NoticeText> = {
  created: {
    subject: `Your ${form} draft is saved`,
    heading: 'Draft saved',
    paragraphs: [
      `<p>We saved a draft of your ${form}. It is not submitted yet.</p>`,
      '<p>You can come back and finish it. If you do not open it for some time, it will be locked and later deleted. We will write to you first.</p>',
      link('Continue your draft'),
    ],
    sms: `We saved a draft of your ${form}. It is not submitted yet.${plainLink}`,
  },
  expiring: {
    subject: `Your ${form} draft will soon be locked`,
    heading: 'Draft about to be locked',
    paragraphs: [
      `<p>You have not opened your ${form} draft for some time. It will be locked${on('lockOn')}.</p>`,
      `<p>To keep it, open it before then. A locked draft cannot be opened, and it is deleted{{#if event.payload.deleteOn}}${on('deleteOn')}{{else}} some time later{{/if}}.</p>`,
      link('Open your draft'),
      ownLink('keepUrl', 'Do you have no time now?', 'Keep my draft'),
      ownLink('deleteUrl', 'Do you not need it any more?', 'Delete my draft and my data'),
    ],
    sms: `Your ${form} draft will be locked${on('lockOn')}. Open it before then to keep it.${plainLink}`,
  },
  locked: {
    subject: `Your ${form} draft is locked`,
    heading: 'Draft locked',
    paragraphs: [
      `<p>You have not opened your ${form} draft for some time, so it is now locked. You cannot open or submit it.</p>`,
      `<p>It will be deleted${on('deleteOn')}, and so will the information that you entered.</p>`,
      '<p>If you still need it, contact the office that you are applying to before that date. They can unlock it.</p>',
    ],
    sms: `Your ${form} draft is locked and will be deleted${on('deleteOn')}. To keep it, contact the office that you are applying to.`,
  },
  unlocked: {
    subject: `Your ${form} draft is unlocked`,
    heading: 'Draft unlocked',
    paragraphs: [
      `<p>Your ${form} draft is unlocked. You can open it again, finish it and submit it.</p>`,
      link('Continue your draft'),
    ],
    sms: `Your ${form} draft is unlocked. You can finish it and submit it.${plainLink}`,
  },
  toDraft: {
    subject: `Your ${form} needs changes`,
    heading: 'Back to draft',
    paragraphs: [
      `<p>Your ${form} was returned to you and is a draft again. It no longer counts as submitted.</p>`,
      '<p>Make the changes that are needed, and submit it again.</p>',
      link('Open your draft'),
    ],
    sms: `Your ${form} was returned to you and is a draft again. Change what is needed and submit it again.${plainLink}`,
  },
  submitted: {
    subject: `We received your ${form}`,
    heading: 'Received',
    paragraphs: [
      `<p>We received your ${form}${onDate('event.timestamp', 'on', englishDate)}.</p>`,
      `<p>You do not have to do anything now. Your reference number is ${reference}.</p>`,
    ],
    sms: `We received your ${form}. Your reference number is ${reference}.`,
  },
  deleted: {
    subject: `Your ${deletedForm} is deleted`,
    heading: 'Deleted',
    paragraphs: [
      `<p>Your ${deletedForm} is deleted, with the information that you entered. It cannot be brought back.</p>`,
      '<p>Your contact details are removed too: this is our last message about it. If you still want to apply, please start again.</p>',
    ],
    sms: `Your ${deletedForm} is deleted, with the information that you entered. This is our last message about it.`,
  },
};
