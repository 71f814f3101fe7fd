// A draft whose applicant got the warning mail, with the links of that mail.
import type { TestApply } from './apply.ts';

const day = 24 * 3_600_000;

export interface WarnedDraft {
  id: string;
  email: string;
  mail: Awaited<ReturnType<TestApply['forms']['platform']['mailbox']['waitFor']>>;
  /** The link that keeps the draft. */
  keep: string;
  /** The link that deletes the draft. */
  remove: string;
}

/** Creates the draft, writes the event of the warning, and waits for the mail. */
export async function warnedDraft(apply: TestApply, language: 'en' | 'fr' = 'en'): Promise<WarnedDraft> {
  const page = apply.browser();
  const { id, etag, email } = await page.start(undefined, { language });
  await page.save(id, { name: 'Ana' }, etag);
  const now = apply.forms.now().getTime();
  const facts = {
    definitionId: 'permit',
    lockOn: new Date(now + 3 * day).toISOString(),
    deleteOn: new Date(now + 18 * day).toISOString(),
  };
  await apply.forms.pool.query(
    `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
    VALUES ($1, $2, 'form-expiring', $3, $4, $4)`,
    [id, apply.forms.platform.tenant.id, facts, new Date(now)],
  );
  const mail = await apply.forms.platform.mailbox.waitFor(
    ({ to, subject }) => to.includes(email) && /soon be locked|bientôt verrouillé/.test(subject),
  );
  const link = (purpose: string) =>
    new RegExp(`https?://\\S+/apply/forms/\\S+/${purpose}\\?link=[^\\s)]+`).exec(mail.text)?.[0] ?? '';
  return { id, email, mail, keep: link('keep'), remove: link('delete') };
}
