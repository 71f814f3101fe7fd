// Tests the links of the warning mail in a real browser and with real mail. Opening a link changes nothing. A mail
// scanner that runs scripts and presses every button deletes nothing. A deletion requires a code.
import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyKeyRing, startTestApply, type TestApply } from '../../../test/support/apply.ts';
import { accessibilityViolations, launchChromium } from '../../../test/support/chromium.ts';
import { isReferenceRun } from '../../../test/support/platform-behaviour.ts';
import { warnedDraft } from '../../../test/support/warned-draft.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createNoticeLinks } from '../notices/links.ts';

let apply: TestApply;
let chromium: Browser;
beforeAll(async () => {
  [apply, chromium] = await Promise.all([
    startTestApply({
      env: () => ({ APPLY_CODE_LIMIT: '500', APPLY_DRAFTS_PER_ADDRESS: '100', CODE_LIFETIME: 'PT5M' }),
    }),
    launchChromium(),
  ]);
});
afterAll(async () => {
  await chromium?.close();
  await apply?.close();
});

const warned = (language?: 'en' | 'fr') => warnedDraft(apply, language);

async function rowOf(id: string) {
  const { rows } = await apply.forms.pool.query(
    `SELECT status, last_accessed AS "lastAccessed", data::text FROM forms WHERE id = $1`,
    [id],
  );
  return rows[0] as { status: string; lastAccessed: Date; data: string } | undefined;
}

const post = (url: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers: { origin: apply.origin, ...headers } });

describe('the warning mail', () => {
  it('is in the language of the form, states the dates, and has both links', async () => {
    const { mail, keep, remove, id } = await warned('fr');
    expect(mail.subject).toBe('Votre brouillon « Permit » sera bientôt verrouillé');
    expect(mail.html).toMatch(/^<!doctype html>\s*<html lang="fr">/);
    // The public platform's notification service ignores the language when it formats a date.
    const date = isReferenceRun ? String.raw`\d{4}-\d\d-\d\d[.,]` : String.raw`\d+ \S+ \d{4}`;
    expect(mail.text).toMatch(new RegExp(`verrouillé le ${date}`));
    expect(mail.text).toMatch(new RegExp(`supprimé le ${date}`));
    expect(mail.text).toContain('Supprimer mon brouillon et mes données');
    for (const link of [keep, remove]) {
      expect(link).toContain(`${apply.origin}/apply/forms/${id}/`);
      const facts = Buffer.from(new URL(link).searchParams.get('link')?.split('.')[0] ?? '', 'base64url').toString();
      expect(facts).toMatch(/^\d+ fr urn:[a-z:-]+/);
    }
  });
});

describe('a mail scanner that opens the links and presses every button', () => {
  it('destroys nothing, with HEAD, GET and a browser with scripts', async () => {
    const { id, keep, remove } = await warned();
    const before = await rowOf(id);
    for (const link of [keep, remove])
      for (const method of ['HEAD', 'GET', 'OPTIONS']) expect((await fetch(link, { method })).status).toBeLessThan(300);
    expect(await rowOf(id)).toEqual(before);
    const context = await chromium.newContext();
    const page = await context.newPage();
    // Each pair is a link, and the index of the button to press on each page that follows.
    for (const [link, presses] of [
      [keep, [0]],
      [remove, [0, 0]],
      [remove, [0, 1]],
    ] as const) {
      await page.goto(link);
      for (const nth of presses) await page.locator('button').nth(nth).click();
      await page.locator('h1').waitFor();
    }
    expect(await page.locator('button').count()).toBe(2);
    await context.close();
    expect(await rowOf(id)).toMatchObject({ status: 'Draft', data: before?.data });
  });
});

describe('the other language', () => {
  it('of a page that a button has opened is a part of the page, because a link would lead back to the button', async () => {
    const { id, keep, remove } = await warned();
    const kept = await (await post(keep)).text();
    expect(kept).toMatch(/<details lang="fr"><summary>Français<\/summary>\s*<h2>Votre brouillon est gardé/);
    expect(kept).toMatch(/Il ne sera pas verrouillé avant le \d/);
    expect(kept).not.toContain('<nav>');
    await apply.forms.setStatus(id, 'Locked');
    expect(await (await post(remove, { step: 'code' })).text()).toContain('<h2>Votre brouillon est verrouillé</h2>');
  });

  it('of the page for the code keeps the page, and sends no other code', async () => {
    const { email, remove } = await warned();
    const { mailbox } = apply.forms.platform;
    const context = await chromium.newContext();
    const page = await context.newPage();
    await page.goto(remove);
    await page.getByRole('button', { name: 'Send me a code' }).click();
    await mailbox.waitFor((one) => one.to.includes(email) && /code/i.test(one.subject));
    const mails = () => mailbox.messages().filter(({ to }) => to.includes(email)).length;
    const before = mails();
    await page.getByRole('link', { name: 'Français' }).click();
    await page.getByRole('heading', { name: 'Entrez le code' }).waitFor();
    await page.getByRole('link', { name: 'English' }).click();
    await page.getByLabel('Code').fill('WRONG1');
    await page.getByRole('button', { name: 'Delete my draft' }).click();
    await page.getByText('The code is wrong or too old').waitFor();
    expect(mails()).toBe(before);
    await context.close();
  });
});

describe('keep my draft', () => {
  it('sets only lastAccessed, as often as it is pressed, and says until when', async () => {
    const { id, keep } = await warned();
    const before = await rowOf(id);
    apply.forms.advance(60_000);
    for (let nth = 0; nth < 2; nth += 1) {
      const answer = await post(keep);
      expect(answer.status).toBe(200);
      expect(await answer.text()).toMatch(/It will not be locked before [A-Z][a-z]+ \d+, \d{4}/);
    }
    const after = await rowOf(id);
    expect(after?.lastAccessed.getTime()).toBeGreaterThan(before?.lastAccessed.getTime() ?? 0);
    expect({ ...after, lastAccessed: 0 }).toEqual({ ...before, lastAccessed: 0 });
  });

  it.each([
    ['en', 'You do not have to do anything now.'],
    ['fr', 'Vous n’avez rien à faire pour le moment.'],
  ] as const)('names no date for a draft on hold, which is not locked: %s', async (language, says) => {
    const { id, keep } = await warned(language);
    await apply.forms.pool.query('UPDATE forms SET held = true WHERE id = $1', [id]);
    const answer = await post(keep);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain(`<p>${says}</p>`);
  });

  it.each([
    ['en', 'We do not know whether your draft was changed.'],
    ['fr', 'Nous ne savons pas si votre brouillon a été modifié.'],
  ] as const)('does not claim that nothing was changed if the form service fails: %s', async (language, says) => {
    const { keep } = await warned(language);
    await apply.forms.pool.query('ALTER TABLE forms RENAME TO forms_away');
    // The page is in the language of the mail, not of the browser.
    const browserLanguage = language === 'fr' ? 'en' : 'fr';
    const answer = await post(keep, {}, { 'accept-language': browserLanguage }).finally(() =>
      apply.forms.pool.query('ALTER TABLE forms_away RENAME TO forms'),
    );
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(await answer.text()).toContain(says);
  });

  it('never unlocks, and changes no form that is not a draft', async () => {
    const { id, keep } = await warned();
    for (const [status, says] of [
      ['Locked', 'Your draft is locked'],
      ['Submitted', 'no longer a draft'],
    ] as const) {
      await apply.forms.setStatus(id, status);
      const before = await rowOf(id);
      const answer = await post(keep);
      expect(answer.status).toBe(409);
      expect(await answer.text()).toContain(says);
      expect(await rowOf(id)).toEqual(before);
    }
  });
});

describe('delete my draft and my data', () => {
  it.each([
    ['Locked', 'Your draft is locked'],
    ['Submitted', 'you cannot delete it here'],
  ] as const)('says so if the form is %s, instead of waiting for a code that never comes', async (status, says) => {
    const { id, remove } = await warned();
    await apply.forms.setStatus(id, status);
    for (const fields of [{ step: 'code' }, { step: 'delete', code: 'ABCDEF' }]) {
      const answer = await post(remove, fields);
      expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining(says)]);
    }
    expect(await rowOf(id)).toMatchObject({ status });
  });

  it('asks for a code that it sends, refuses a wrong one, and then erases the form', async () => {
    const { id, email, remove } = await warned();
    const context = await chromium.newContext();
    const page = await context.newPage();
    await page.goto(remove);
    const { mailbox } = apply.forms.platform;
    const earlier = new Set(mailbox.messages().map((one) => one.id));
    await page.getByRole('button', { name: 'Send me a code' }).click();
    const mail = await mailbox.waitFor(
      (one) => !earlier.has(one.id) && one.to.includes(email) && /code/i.test(one.subject),
    );
    await page.getByLabel('Code').fill('WRONG1');
    await page.getByRole('button', { name: 'Delete my draft' }).click();
    await page.getByText('The code is wrong or too old').waitFor();
    expect(await page.title()).toMatch(/^Error: /);
    expect((await rowOf(id))?.status).toBe('Draft');
    await page.getByLabel('Code').fill(/^\s*([A-Z0-9]{6,})\s*$/m.exec(mail.text)?.[1] ?? '');
    await page.getByRole('button', { name: 'Delete my draft' }).click();
    await page.getByRole('heading', { name: 'Your draft is deleted' }).waitFor();
    await context.close();
    expect(await rowOf(id)).toBeUndefined();
    expect(await (await post(remove, { step: 'delete', code: 'WRONG2' })).text()).toContain('Your draft is deleted');
    await apply.forms.platform.mailbox.waitFor((one) => one.to.includes(email) && /draft is deleted/.test(one.subject));
  });

  it('asks for the code without an error if the button that sends it was clicked twice', async () => {
    const { remove } = await warned();
    const [first, second] = [await post(remove, { step: 'code' }), await post(remove, { step: 'code' })];
    expect([first.status, second.status, Number(second.headers.get('retry-after'))]).toEqual([
      ...[200, 429],
      expect.toSatisfy((seconds: number) => seconds > 0 && seconds <= 60),
    ]);
    expect(await second.text()).toBe(await first.text());
  });

  it('says that the draft is deleted, also if the button was clicked twice', async () => {
    const { id, email, remove } = await warned();
    const code = await apply.code(apply.browser(), id, email);
    for (const _click of ['first', 'second']) {
      const answer = await post(remove, { step: 'delete', code });
      expect(await answer.text()).toContain('Your draft is deleted');
      expect(answer.status).toBe(200);
    }
    expect(await rowOf(id)).toBeUndefined();
  });

  it('takes a code with a dash or an invisible character in it', async () => {
    const { id, email, remove } = await warned();
    const code = await apply.code(apply.browser(), id, email);
    const typed = `${code.slice(0, 3)}\u2011${code.slice(3)}\u200b`;
    expect((await post(remove, { step: 'delete', code: typed })).status).toBe(200);
    expect(await rowOf(id)).toBeUndefined();
  });

  it('says that a code is wrong if no header can contain it, instead of that something failed', async () => {
    const { id, remove } = await warned();
    const answer = await post(remove, { step: 'delete', code: 'ABC\u2019EF' });
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('The code is wrong')]);
    expect((await rowOf(id))?.status).toBe('Draft');
  });

  it.each([
    ['en', 'It works for 5 minutes.'],
    ['fr', 'Il est valable 5 minutes.'],
  ] as const)('states how long the code works, as the operator has set it: %s', async (language, says) => {
    const { remove } = await warned(language);
    expect(await (await post(remove)).text()).toContain(says);
    expect(await (await post(remove, { step: 'delete' })).text()).toContain(says);
  });

  it('does not take a code that a browser of the applicant has used', async () => {
    const { id, email, remove } = await warned();
    const page = apply.browser();
    const code = await apply.code(page, id, email);
    await page.enter(id, code);
    for (const link of [remove, remove.replace(id, id.toUpperCase())])
      expect((await post(link, { step: 'delete', code })).status, link).toBe(403);
    expect((await rowOf(id))?.status).toBe('Draft');
  });
});

describe('a link', () => {
  it('works for its form and its purpose only', async () => {
    const [mine, other] = [await warned(), await warned()];
    const signed = new URL(mine.keep).search;
    const changed = [
      `${apply.origin}/apply/forms/${other.id}/keep${signed}`,
      `${apply.origin}/apply/forms/${mine.id}/delete${signed}`,
      `${mine.keep}x`,
      mine.keep.replace(/link=./, 'link=x'),
      `${apply.origin}/apply/forms/${mine.id}/keep`,
      `${apply.origin}/apply/forms/${randomUUID()}/keep${signed}`,
    ];
    const before = await rowOf(mine.id);
    for (const link of changed)
      for (const answer of [await fetch(link), await post(link)]) {
        expect(answer.status, link).toBe(400);
        expect(answer.headers.get('content-type')).toMatch(/^text\/html/);
      }
    expect(await rowOf(mine.id)).toEqual(before);
  });

  it('works as long as the form exists, however long the person has kept it', async () => {
    const { id } = await warned();
    const links = createNoticeLinks({ keys: createKeyRing(applyKeyRing), publicUrl: apply.origin });
    const facts = { tenantId: apply.forms.platform.tenant.id, language: 'fr', expires: new Date(0) } as const;
    const [keep, remove] = (['keep', 'delete'] as const).map((purpose) => links.urlOf(purpose, id, facts));
    expect((await post(keep ?? '')).status).toBe(200);
    expect((await post(remove ?? '')).status).toBe(200);
    await apply.forms.ask('DELETE', `/${id}`, { as: 'admin' });
    const gone = await post(keep ?? '', {}, { 'accept-language': 'en' });
    expect([gone.status, await gone.text()]).toEqual([410, expect.stringContaining('Ce brouillon n’existe plus')]);
  });

  it('cannot be used by a page of another site', async () => {
    const { id, keep } = await warned();
    const before = await rowOf(id);
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<
      string,
      string
    >[])
      expect((await post(keep, {}, headers)).status).toBe(403);
    expect(await rowOf(id)).toEqual(before);
  });

  it('does not reach the log', async () => {
    const { keep, remove } = await warned();
    await post(keep);
    const lines = apply.forms.log.text();
    for (const link of [keep, remove]) expect(lines).not.toContain(new URL(link).searchParams.get('link'));
  });
});

describe('a page that reports a problem', () => {
  it('is in the language of the mail, also in a browser with another language', async () => {
    const { id, keep, remove } = await warned('fr');
    const headers = { 'accept-language': 'en' };
    await apply.forms.setStatus(id, 'Locked');
    const locked = [await post(keep, {}, headers), await post(remove, { step: 'code' }, headers)];
    for (const answer of locked)
      expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('<html lang="fr"')]);
  });
});

describe('the pages and the mail', () => {
  it.each([
    ['light', 'fr'],
    ['dark', 'en'],
  ] as const)(
    'have no violation that axe finds at 320 pixels, in %s colours (%s), and no scripts',
    async (colorScheme, lang) => {
      const { mail, keep, remove } = await warned();
      const context = await chromium.newContext({
        colorScheme,
        viewport: { width: 320, height: 700 },
        bypassCSP: true,
      });
      const page = await context.newPage();
      const answer = await page.goto(`${lang === 'fr' ? keep.replace('link=', 'link=x') : keep}&lang=${lang}`);
      expect(answer?.headers()['content-security-policy']).toMatch(/^default-src 'none'; .*form-action 'self'/);
      expect(await page.locator('script').count()).toBe(0);
      expect(await page.locator('html').getAttribute('lang')).toBe(lang);
      expect(await accessibilityViolations(page)).toEqual([]);
      await page.goto(remove);
      await page.getByRole('button').click();
      await page.getByRole('button', { name: 'Delete my draft' }).click();
      await page.getByText('Enter the code.').waitFor();
      expect(await accessibilityViolations(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      await page.goto(`${keep}&lang=${lang}`);
      await page.getByRole('button').click();
      await page.locator('summary').click();
      expect(await accessibilityViolations(page)).toEqual([]);
      const shown = await context.newPage();
      await shown.setContent(mail.html ?? '');
      expect(await accessibilityViolations(shown)).toEqual([]);
      await context.close();
    },
  );
});

describe('the OpenAPI document', () => {
  const openApi = async () =>
    (await (await fetch(`${apply.origin}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>;
    };

  it('lists each status of these pages, as HTML', async () => {
    const [open, locked, gone] = [await warned(), await warned(), await warned()];
    await apply.forms.setStatus(locked.id, 'Locked');
    await apply.forms.pool.query('DELETE FROM forms WHERE id = $1', [gone.id]);
    const other = { origin: 'https://elsewhere.example.org' };
    const send = async (method: 'get' | 'post', link: string, init: RequestInit = {}) => {
      const answer = await fetch(link, { method, headers: { origin: apply.origin }, ...init });
      const purpose = new URL(link).pathname.split('/').at(-1);
      const type = answer.headers.get('content-type')?.split(';')[0];
      return { place: [`/apply/forms/{formId}/${purpose}`, method] as const, status: answer.status, type };
    };
    const fields = (given: Record<string, string>) => ({ body: new URLSearchParams(given) });
    const answers = [
      ...[await send('get', open.keep), await send('get', open.remove), await send('get', `${open.keep}x`)],
      ...[await send('post', open.keep), await send('post', open.remove, fields({}))],
      ...[await send('post', `${open.keep}x`), await send('post', open.keep, { headers: other })],
      ...[await send('post', locked.keep), await send('post', locked.remove, fields({}))],
      ...[await send('post', gone.keep), await send('post', open.remove, fields({ step: 'delete', code: 'WRONG1' }))],
      ...[await send('post', open.remove, fields({ step: 'delete' })), await send('post', open.remove, fields({}))],
      await send('post', open.remove, { body: '{}', headers: { 'content-type': 'application/json' } }),
      await send('post', open.remove, fields({ code: 'x'.repeat(10_000) })),
    ];
    await apply.forms.ask('DELETE', `/${open.id}`, { as: 'admin' });
    answers.push(await send('post', open.keep), await send('post', open.remove));
    expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual([
      200, 400, 403, 404, 409, 410, 413, 415, 429,
    ]);
    const document = await openApi();
    for (const { place, status, type } of answers) {
      const [path, method] = place;
      const declared = document.paths[path]?.[method]?.responses[status]?.content ?? {};
      expect([path, method, status, Object.keys(declared)]).toEqual([path, method, status, ['text/html']]);
      expect(type).toBe('text/html');
    }
  });

  it('declares for opening a link only the possible statuses, and a link of a deleted form opens', async () => {
    const { id, keep, remove } = await warned();
    await apply.forms.ask('DELETE', `/${id}`, { as: 'admin' });
    const { paths } = await openApi();
    for (const link of [keep, remove]) {
      expect((await fetch(link)).status).toBe(200);
      const path = `/apply/forms/{formId}/${new URL(link).pathname.split('/').at(-1)}`;
      expect([path, Object.keys(paths[path]?.get?.responses ?? {})]).toEqual([path, ['200', '400', '429', '500']]);
    }
  });
});
