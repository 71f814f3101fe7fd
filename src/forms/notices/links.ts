// Creates and reads the links of the warning mail. One link keeps the draft; the other deletes it. Each link is signed
// for one form and one purpose, and works as long as the form exists. It contains no form data. Anyone who has the link
// can keep the draft, but needs a code to delete it.

import type { KeyRing } from '../../service/keys/key-ring.ts';
import { isSameText } from '../../service/same-text.ts';
import type { Language } from '../forms/form.ts';

export const linkPurposes = ['keep', 'delete'] as const;
export type LinkPurpose = (typeof linkPurposes)[number];

export interface LinkFacts {
  tenantId: string;
  language: Language;
}

export interface NewLinkFacts extends LinkFacts {
  /** When the form is due to be deleted. Pods of version 0.2.0 refuse the link after this time. */
  expires: Date;
}

export interface NoticeLinks {
  /** Returns a URL such as `https://forms.example.org/apply/forms/<id>/keep?link=…`. */
  urlOf(purpose: LinkPurpose, formId: string, facts: NewLinkFacts): string;
  /** Returns the facts in a link; undefined if the link was not made for this form and purpose. */
  read(purpose: LinkPurpose, formId: string, link: string): LinkFacts | undefined;
}

const longestLink = 1_024;

/** `publicUrl` is the base URL at which browsers reach the form service. */
export function createNoticeLinks({
  keys,
  publicUrl,
}: {
  keys: Pick<KeyRing, 'hmacs'>;
  publicUrl: string;
}): NoticeLinks {
  const signatures = (purpose: LinkPurpose, formId: string, facts: string) =>
    keys.hmacs([purpose, formId.toLowerCase(), facts].join('\n'), 'notice link');
  return {
    urlOf(purpose, formId, { tenantId, language, expires }) {
      const seconds = Math.floor(expires.getTime() / 1_000);
      const facts = Buffer.from([seconds, language, tenantId].join(' ')).toString('base64url');
      return `${publicUrl}/apply/forms/${formId}/${purpose}?link=${facts}.${signatures(purpose, formId, facts)[0]}`;
    },

    read(purpose, formId, link) {
      const [facts = '', given = '', more] = link.length > longestLink ? [] : link.split('.');
      if (more !== undefined || given === '') return undefined;
      if (!signatures(purpose, formId, facts).some((signature) => isSameText(signature, given))) return undefined;
      const [, language, tenantId = ''] = Buffer.from(facts, 'base64url').toString().split(' ');
      return { tenantId, language: language === 'fr' ? 'fr' : 'en' };
    },
  };
}
