// Tests the intake application over HTTP, with two browsers, the real identity provider and real mail. A browser has
// access to a form only with the form's cookie, which it gets by creating the form or by entering a code for it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { get } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ApplicantBrowser, startTestApply, type TestApply } from '../../../test/support/apply.ts';
import { configure } from '../../../test/support/forms.ts';
import { call } from '../../../test/support/platform.ts';
import { purgeBatch } from '../expiry/purge-store.ts';

const minute = 60_000;
let apply: TestApply;
beforeAll(async () => {
  apply = await startTestApply({ env: () => ({ APPLY_CODE_LIMIT: '100', APPLY_DRAFTS_PER_ADDRESS: '60' }) });
});
afterAll(() => apply.close());

const browser = () => apply.browser();
const data = (page: ApplicantBrowser, id: string) => page.ask('GET', `/forms/${id}/data`);
const refusal = 'urn:formgate:problem:code-entry-required';

/** Creates a draft in a new browser, `owner`, and saves data in it. */
async function draftOfAnother() {
  const owner = browser();
  const { id, etag, email } = await owner.start();
  const saved = await owner.save(id, { name: 'Ana' }, etag);
  return { owner, id, email, etag: saved };
}

async function removeOldCodes() {
  const client = await apply.forms.pool.connect();
  try {
    await purgeBatch(client, 'apply_codes', { now: apply.forms.now(), after: undefined, limit: 100, dryRun: false });
  } finally {
    client.release();
  }
}

describe('the applicant’s path', () => {
  it('starts, saves, returns in another browser with a code, and submits', async () => {
    const first = browser();
    const definition = await first.ask('GET', '/definitions/permit');
    expect(definition).toMatchObject({
      status: 200,
      body: { id: 'permit', name: 'Permit', tenantName: 'Demo', files: false, urnPrefix: 'urn:example' },
    });
    const { id, etag, email } = await first.start();
    await first.save(id, { name: 'Ana' }, etag);
    // The browser that created the form can save. Like any other browser, it can read only after a code was entered in
    // it.
    expect(await data(first, id)).toMatchObject({ status: 401, body: { type: refusal } });

    const second = browser();
    expect(await data(second, id)).toMatchObject({ status: 401, body: { type: refusal } });
    const code = await apply.code(second, id, email);
    expect((await second.enter(id, ` ${code.toLowerCase()} `)).status).toBe(204);
    const read = await data(second, id);
    expect(read).toMatchObject({ status: 200, body: { data: { name: 'Ana' }, files: {} } });
    const status = await second.ask('GET', `/forms/${id}`);
    expect(status.body).toMatchObject({ id, definitionId: 'permit', status: 'Draft', readable: true, language: 'en' });
    expect(status.text).not.toContain(email);
    await second.save(id, { name: 'Ana', age: 40 }, read.headers.get('etag') ?? '');

    // Another version was saved since, so the second browser's first version is stale.
    const outdated = { 'if-match': read.headers.get('etag') ?? '', 'idempotency-key': randomUUID() };
    const stale = { body: { data: {}, files: {} }, headers: outdated };
    expect((await second.ask('PUT', `/forms/${id}/data`, stale)).status).toBe(412);
    expect((await second.ask('POST', `/forms/${id}/submission`, { headers: outdated })).status).toBe(412);
    const key = { headers: { 'idempotency-key': randomUUID() } };
    const submitted = await second.ask('POST', `/forms/${id}/submission`, key);
    expect(submitted).toMatchObject({ status: 200, body: { id, status: 'Submitted' } });
    expect(submitted.body.number).toMatch(/^[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}$/);
    expect((await second.ask('POST', `/forms/${id}/submission`, key)).body).toEqual(submitted.body);
    expect((await data(second, id)).body).toEqual({ data: { name: 'Ana', age: 40 }, files: {} });
    expect((await second.ask('GET', `/forms/${id}`)).body).toMatchObject({ status: 'Submitted' });
  });

  it('sends the mail with the code in the language of the form, from the subject to the last line', async () => {
    const page = browser();
    const { id, email } = await page.start(undefined, { language: 'fr' });
    await apply.code(page, id, email);
    const mail = apply.forms.platform.mailbox
      .messages()
      .find(({ to, subject }) => to.includes(email) && subject.includes('code'));
    expect(mail?.subject).toBe('Votre code');
    expect(
      mail?.text
        .replace(/^[A-Z0-9]{6}$/m, '…')
        .trim()
        .split(/\s*\n\s*/),
    ).toEqual([
      'Bonjour,',
      'Utilisez ce code pour ouvrir votre brouillon.',
      'Votre code est :',
      '…',
      'Il sert une seule fois, pendant 10 minutes. Si vous ne l’avez pas demandé, ne faites rien.',
    ]);
  });

  it('shows what is missing with pointers into the data', async () => {
    const page = browser();
    const { id, etag } = await page.start();
    await page.save(id, { name: 'Ana', age: -1 }, etag);
    const answer = await page.ask('POST', `/forms/${id}/submission`, { headers: { 'idempotency-key': randomUUID() } });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toEqual([expect.objectContaining({ pointer: '/data/age' })]);
  });

  it('keeps numbers and the order of members as they were sent', async () => {
    const { owner, id, email, etag } = await draftOfAnother();
    const body = '{"data":{"b":1.50,"a":1e2},"files":{}}';
    expect((await owner.ask('PUT', `/forms/${id}/data`, { body, headers: { 'if-match': etag } })).status).toBe(200);
    await owner.enter(id, await apply.code(owner, id, email));
    expect((await data(owner, id)).text).toBe('{"data":{"b":1.50,"a":1e2},"files":{}}');
  });
});

describe('a browser that has not entered a code', () => {
  it('gets the same 401 for a form of another and for one that does not exist', async () => {
    const { id } = await draftOfAnother();
    const page = browser();
    const requests: [string, string, object?][] = [
      ['GET', ''],
      ['GET', '/data'],
      ['PUT', '/data', { data: {}, files: {} }],
      ['POST', '/submission'],
      ['DELETE', ''],
      ['POST', '/files?name=a.txt'],
    ];
    for (const [method, path, body] of requests) {
      const of = async (form: string) => {
        const { status, body: problem } = await page.ask(method, `/forms/${form}${path}`, {
          ...(body && { body }),
          headers: { 'if-match': '"1"', 'idempotency-key': randomUUID() },
        });
        return { status, ...problem, instance: undefined };
      };
      const [mine, unknown] = [await of(id), await of(randomUUID())];
      expect(mine, `${method} ${path}`).toMatchObject({ status: 401, type: refusal });
      expect(mine).toEqual(unknown);
    }
  });

  it('is not let in by a code that was accepted in another browser', async () => {
    const { owner, id, email } = await draftOfAnother();
    const code = await apply.code(owner, id, email);
    expect((await owner.enter(id, code)).status).toBe(204);
    const thief = browser();
    await thief.ask('GET', '/definitions/permit');
    expect(await data(thief, id)).toMatchObject({ status: 401 });
    expect(await thief.enter(id, code)).toMatchObject({
      status: 403,
      body: { type: 'urn:formgate:problem:invalid-code' },
    });
    expect(await data(thief, id)).toMatchObject({ status: 401 });
    // The browser that used the code may send it again, because the first response may have been lost.
    expect((await owner.enter(id, code)).status).toBe(204);
  });

  it('cannot change a form that it started after the applicant has entered a code, also hours later', async () => {
    const stranger = browser();
    const { id, etag, email } = await stranger.start();
    const applicant = browser();
    expect((await applicant.enter(id, await apply.code(applicant, id, email))).status).toBe(204);
    const saved = await applicant.save(id, { name: 'Ana', age: 40 }, etag);
    for (const hours of [0, 2, 9]) {
      apply.forms.advance(hours * 60 * minute);
      // A code of another form removes old rows, and so does the reconciler.
      const other = await applicant.start();
      await applicant.enter(other.id, await apply.code(applicant, other.id, other.email));
      await removeOldCodes();
      const headers = { 'if-match': saved, 'idempotency-key': randomUUID() };
      const requests: [string, string, object?][] = [
        ['PUT', '/data', { data: {}, files: {} }],
        ['POST', '/submission'],
        ['POST', '/files?name=a.txt'],
        ['GET', ''],
      ];
      for (const [method, path, body] of requests) {
        const answer = await stranger.ask(method, `/forms/${id}${path}`, { headers, ...(body && { body }) });
        expect(answer, `${method} ${path} after ${hours} hours`).toMatchObject({
          status: 401,
          body: { type: refusal },
        });
      }
    }
    await applicant.save(id, { name: 'Ana', age: 41 }, saved);
    // The browser that started the form may be the applicant's own.
    expect((await stranger.enter(id, await apply.code(stranger, id, email))).status).toBe(204);
    expect((await data(stranger, id)).body).toMatchObject({ data: { age: 41 } });
  });

  it('keeps what a code has opened when it repeats the start, as after a lost response', async () => {
    const page = browser();
    const headers = { 'idempotency-key': randomUUID() };
    const body = { email: `${randomUUID()}@example.org`, language: 'en' };
    const start = () => page.ask('POST', '/definitions/permit/forms', { body, headers });
    const first = await start();
    const id = String(first.body.id);
    expect((await page.enter(id, await apply.code(page, id, body.email))).status).toBe(204);
    expect(await start()).toMatchObject({ status: 201, body: { id } });
    await page.save(id, { name: 'Ana' }, String(first.body.etag));
    expect((await data(page, id)).body).toMatchObject({ data: { name: 'Ana' } });
  });

  it('is let in by a code with dashes and invisible characters, as phones and mail programs add them', async () => {
    const { owner, id, email } = await draftOfAnother();
    const code = await apply.code(owner, id, email);
    const typed = `\u2060${code.slice(0, 3)}\u2013\u00ad${code.slice(3)}\u200b`;
    expect((await owner.enter(id, typed)).status).toBe(204);
  });

  it('learns that a code is wrong if no header can contain it, and cannot try others without end', async () => {
    const { owner, id } = await draftOfAnother();
    const logged = apply.forms.log.lines().length;
    for (const code of ['\u0410\u0412\u0421DEF', 'ABC\u2019EF', 'ÀBCDEF', '\ud83d\ude00', 'ABC\u007fEF'])
      expect(await owner.enter(id, code), code).toMatchObject({
        status: 403,
        body: { type: 'urn:formgate:problem:invalid-code' },
      });
    expect(await owner.enter(id, '\u0410')).toMatchObject({ status: 429 });
    const failures = apply.forms.log.lines().slice(logged);
    expect(failures.filter(({ msg }) => msg === 'intake application call failed')).toEqual([]);
  });

  it('is not let in by such a code if it writes the id of the form in another letter case', async () => {
    const { owner, id, email } = await draftOfAnother();
    const code = await apply.code(owner, id, email);
    expect((await owner.enter(id.toUpperCase(), code)).status).toBe(204);
    for (const form of [id, id.toUpperCase(), id.replace(/[a-f]/, (letter) => letter.toUpperCase())])
      expect(await browser().enter(form, code), form).toMatchObject({
        status: 403,
        body: { type: 'urn:formgate:problem:invalid-code' },
      });
    // The cookie opens the form, whether the id is written in lower or in upper case.
    for (const form of [id, id.toUpperCase()]) expect((await data(owner, form)).status, form).toBe(200);
  });

  it('is let in by a code only once, even if several browsers enter it concurrently', async () => {
    const { owner, id, email } = await draftOfAnother();
    const code = await apply.code(owner, id, email);
    const pages = [browser(), browser(), browser()];
    for (const page of pages) await page.ask('GET', '/definitions/permit');
    const answers = await Promise.all(pages.map((page) => page.enter(id, code)));
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
  });

  it('cannot use the cookie of one form for another, nor a changed one', async () => {
    const [mine, other] = [await draftOfAnother(), await draftOfAnother()];
    const name = (id: string) => `formgate-form-${id.replaceAll('-', '')}`;
    const page = browser();
    page.jar.set(name(other.id), mine.owner.jar.get(name(mine.id)) ?? '');
    expect(await page.ask('GET', `/forms/${other.id}`)).toMatchObject({ status: 401 });
    page.jar.set(name(mine.id), `${mine.owner.jar.get(name(mine.id))}x`);
    expect(await page.ask('GET', `/forms/${mine.id}`)).toMatchObject({ status: 401 });
    page.jar.set(name(mine.id), mine.owner.jar.get(name(mine.id)) ?? '');
    expect(await page.ask('GET', `/forms/${mine.id}`)).toMatchObject({ status: 200 });
  });

  it('cannot use a cookie at the pages of another tenant', async () => {
    const { owner, id } = await draftOfAnother();
    const elsewhere = apply.browser('other');
    for (const [name, value] of owner.jar) elsewhere.jar.set(name, value);
    // An upload does not call the form service, which would refuse the form of another tenant.
    const upload = async (page: ApplicantBrowser) => {
      const headers = { 'content-type': 'application/octet-stream' };
      return (await page.ask('POST', `/forms/${id}/files?name=plan.pdf`, { body: 'content', headers })).body.type;
    };
    expect(await upload(elsewhere)).toBe(refusal);
    expect(await upload(owner)).toBe('urn:formgate:problem:no-file-service');
  });

  it('cannot use two valid cookies of one form, because another host may have set one of them', async () => {
    const { owner, id, email } = await draftOfAnother();
    const name = `formgate-form-${id.replaceAll('-', '')}`;
    const code = await apply.code(owner, id, email);
    await owner.enter(id, code);
    const first = `${name}=${owner.jar.get(name)}`;
    await owner.enter(id, code);
    const second = `${name}=${owner.jar.get(name)}`;
    expect(second).not.toBe(first);
    const show = async (cookie: string) => (await owner.ask('GET', `/forms/${id}`, { headers: { cookie } })).status;
    expect([await show(first), await show(second)]).toEqual([200, 200]);
    expect(await show(`${first}; ${second}`)).toBe(401);
  });

  it('does not get the form of another browser with its idempotency key', async () => {
    const [one, two] = [browser(), browser()];
    const key = randomUUID();
    const start = (page: ApplicantBrowser) =>
      page.ask('POST', '/definitions/permit/forms', {
        body: { email: 'same@example.org', language: 'en' },
        headers: { 'idempotency-key': key },
      });
    await one.ask('GET', '/definitions/permit');
    const first = await start(one);
    expect((await start(one)).body.id).toBe(first.body.id);
    expect((await start(two)).body.id).not.toBe(first.body.id);
  });

  it('cannot find out by asking for codes whether a form exists', async () => {
    const { id } = await draftOfAnother();
    const page = browser();
    const locked = await draftOfAnother();
    await apply.forms.setStatus(locked.id, 'Locked');
    const unknown = randomUUID();
    for (const form of [id, locked.id, unknown]) {
      expect(await page.ask('POST', `/forms/${form}/codes`)).toMatchObject({ status: 202, body: { sent: true } });
      const again = await page.ask('POST', `/forms/${form}/codes`);
      expect(again.status).toBe(429);
      expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await page.enter(form, 'WRONG1')).toMatchObject({ status: 403 });
    }
    for (let wrong = 0; wrong < 4; wrong += 1) await page.enter(unknown, `WRONG${wrong}`);
    expect(await page.enter(unknown, 'WRONG9')).toMatchObject({ status: 429 });
  });
});

describe('the cookie of a form', () => {
  it('cannot be read by scripts, is not sent by other sites, and contains nothing readable', async () => {
    const page = browser();
    const { id, email } = await page.start();
    const answer = await page.enter(id, await apply.code(page, id, email));
    const [line = ''] = answer.headers.getSetCookie().filter((one) => one.startsWith('formgate-form-'));
    expect(line).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const secure = await page.ask('GET', '/definitions/permit', {
      headers: { cookie: undefined, 'x-forwarded-proto': 'https' },
    });
    expect(secure.headers.getSetCookie()[0]).toMatch(/^__Host-formgate-browser=.*Secure/);
    const values = [...page.jar.values()].map((value) => Buffer.from(value, 'base64url').toString('latin1')).join();
    expect(values).not.toContain(id);
  });

  it('lets its browser read for 30 minutes, save for 12 hours, and is then worth nothing', async () => {
    const { owner, id, email, etag } = await draftOfAnother();
    await owner.enter(id, await apply.code(owner, id, email));
    apply.forms.advance(29 * minute);
    expect((await data(owner, id)).status).toBe(200);
    apply.forms.advance(2 * minute);
    expect(await data(owner, id)).toMatchObject({ status: 401, body: { type: refusal } });
    expect(await owner.ask('DELETE', `/forms/${id}`)).toMatchObject({ status: 401 });
    expect((await owner.ask('GET', `/forms/${id}`)).body).toMatchObject({ readable: false });
    await owner.save(id, { name: 'Ana' }, etag);
    apply.forms.advance(12 * 60 * minute);
    expect(await owner.ask('GET', `/forms/${id}`)).toMatchObject({ status: 401 });
  });

  it('lives no longer if the request that created the form is repeated', async () => {
    const page = browser();
    const start = () =>
      page.ask('POST', '/definitions/permit/forms', {
        body: { email: 'ana@example.org', language: 'en' },
        headers: { 'idempotency-key': '01920d4e-7b5a-7c3e-9f5e-7c1e3f0c8e2d' },
      });
    const { id } = (await start()).body;
    apply.forms.advance(11 * 60 * minute);
    expect((await start()).body.id).toBe(id);
    expect((await page.ask('GET', `/forms/${id}`)).status).toBe(200);
    apply.forms.advance(61 * minute);
    expect((await page.ask('GET', `/forms/${id}`)).status).toBe(401);
    expect((await start()).body.id).toBe(id);
    expect((await page.ask('GET', `/forms/${id}`)).status).toBe(401);
  });

  it('is forgotten on request, and the ninth form replaces the oldest', async () => {
    const page = browser();
    const ids: string[] = [];
    for (let nth = 0; nth < 9; nth += 1) {
      ids.push((await page.start()).id);
      apply.forms.advance(1_000);
    }
    expect([...page.jar.keys()].filter((name) => name.startsWith('formgate-form-'))).toHaveLength(8);
    expect((await page.ask('GET', `/forms/${ids[0]}`)).status).toBe(401);
    expect((await page.ask('GET', `/forms/${ids[8]}`)).status).toBe(200);
    expect((await page.ask('DELETE', `/forms/${ids[8]}/cookie`)).status).toBe(204);
    expect((await page.ask('GET', `/forms/${ids[8]}`)).status).toBe(401);
  });

  it('of a deleted form opens nothing', async () => {
    const { owner, id, email } = await draftOfAnother();
    await owner.enter(id, await apply.code(owner, id, email));
    const kept = new Map(owner.jar);
    expect((await owner.ask('DELETE', `/forms/${id}`)).status).toBe(204);
    expect(owner.jar.size).toBeLessThan(kept.size);
    for (const [name, value] of kept) owner.jar.set(name, value);
    expect((await data(owner, id)).status).toBe(410);
  });
});

describe('a page of another origin', () => {
  it.each([
    ['without the header', { 'x-formgate-apply': undefined }],
    ['with another Origin', { origin: 'https://evil.example' }],
    ['with the Origin null', { origin: 'null' }],
    ['as cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['as same-site', { 'sec-fetch-site': 'same-site' }],
  ])('changes nothing %s, even with the cookies', async (_what, headers) => {
    const { owner, id, etag } = await draftOfAnother();
    const put = await owner.ask('PUT', `/forms/${id}/data`, {
      body: { data: {}, files: {} },
      headers: { 'if-match': etag, ...headers },
    });
    expect(put).toMatchObject({ status: 403, body: { type: 'urn:formgate:problem:forbidden' } });
    const start = await browser().ask('POST', '/definitions/permit/forms', {
      body: { email: 'victim@example.org', language: 'en' },
      headers: { 'idempotency-key': randomUUID(), ...headers },
    });
    expect(start.status).toBe(403);
    expect((await browser().ask('POST', `/forms/${id}/codes`, { headers })).status).toBe(403);
  });

  it('reads nothing', async () => {
    const { owner, id } = await draftOfAnother();
    const answer = await owner.ask('GET', `/forms/${id}`, { headers: { 'sec-fetch-site': 'cross-site' } });
    expect(answer.status).toBe(403);
    const own = await owner.ask('GET', `/forms/${id}`);
    expect(own.headers.get('access-control-allow-credentials')).toBeNull();
    expect(own.headers.get('cross-origin-resource-policy')).toBe('same-origin');
  });
});

it('a proxy that makes ETags weak prevents neither a save nor the submission', async () => {
  const page = browser();
  const { id, etag, email } = await page.start();
  const saved = await page.save(id, { name: 'Ana' }, `W/${etag}`);
  await page.enter(id, await apply.code(page, id, email));
  const { headers } = await data(page, id);
  expect([headers.get('etag'), headers.get('cache-control')]).toEqual([saved, 'no-store, no-transform']);
  const submit = (tag: string) =>
    page.ask('POST', `/forms/${id}/submission`, { headers: { 'if-match': tag, 'idempotency-key': randomUUID() } });
  expect((await submit(`W/${etag}`)).status).toBe(412);
  expect((await submit(`W/${saved}`)).status).toBe(200);
});

describe('a save whose response was lost', () => {
  it('gets its response when it is repeated with the same Save-Id, and another save gets 412', async () => {
    const page = browser();
    const { id, etag } = await page.start();
    const save = (headers: Record<string, string>) =>
      page.ask('PUT', `/forms/${id}/data`, {
        body: { data: { name: 'Ana' }, files: {} },
        headers: { 'if-match': etag, ...headers },
      });
    const saveId = randomUUID();
    const first = await save({ 'save-id': saveId });
    const again = await save({ 'save-id': saveId });
    expect([again.status, again.headers.get('etag')]).toEqual([200, first.headers.get('etag')]);
    expect((await save({ 'save-id': randomUUID() })).status).toBe(412);
    expect((await save({})).status).toBe(412);
    expect(await page.ask('PUT', `/forms/${id}/data`, { body: { data: {}, files: {} } })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/headers/if-match' }] },
    });
  });
});

it('a save succeeds even if it cannot be recorded for retries', async () => {
  const page = browser();
  const { id, etag } = await page.start();
  const { pool, log } = apply.forms;
  await pool.query('ALTER TABLE apply_saves RENAME TO hidden_saves');
  const saved = await page.ask('PUT', `/forms/${id}/data`, {
    body: { data: { name: 'Ana' }, files: {} },
    headers: { 'if-match': etag, 'save-id': randomUUID() },
  });
  await pool.query('ALTER TABLE hidden_saves RENAME TO apply_saves');
  expect(saved.status).toBe(200);
  expect(log.lines().filter(({ msg }) => msg === 'save not recorded for retries')).toHaveLength(1);
  await page.save(id, { name: 'Ana', age: 40 }, saved.headers.get('etag') ?? '');
});

describe('invalid input', () => {
  it.each([
    [{ email: 'no address' }, '/email'],
    [{ name: 'see evil.com' }, '/name'],
    [{ language: 'de' }, '/language'],
    [{ more: 1 }, '/more'],
  ])('at the start names its field: %j', async (change, pointer) => {
    const answer = await browser().ask('POST', '/definitions/permit/forms', {
      body: { email: 'ana@example.org', language: 'en', ...change },
      headers: { 'idempotency-key': randomUUID() },
    });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
  });

  it.each(['/definitions/%2e', '/definitions/..', '/registers/%2e%2e/entries'])(
    'is the path %s, which a URL parser would shorten',
    async (path) => {
      // `fetch` would shorten the path itself.
      const [response] = await once(get(`${apply.forms.url}`, { path: `/apply/api/tenants/demo${path}` }), 'response');
      const { status, errors } = (await json(response)) as { status: number; errors: { detail: string }[] };
      expect([status, errors[0]?.detail]).toEqual([400, 'must be a name']);
    },
  );

  it('is a tenant, a definition or a register that is not open to applicants', async () => {
    await apply.forms.define({ id: 'closed', name: 'Closed', applicantRoles: ['applicant'], anonymousApply: false });
    const page = browser();
    for (const path of ['/definitions/closed', '/definitions/unknown', '/registers/unknown/entries'])
      expect((await page.ask('GET', path)).status, path).toBe(404);
    const { forms } = apply;
    const created = await call(`${forms.url}/form/v1/registers`, {
      ...{ method: 'POST', token: forms.token('admin') },
      body: { name: 'towns', description: 'Towns', entries: ['Banff'] },
    });
    expect(created.status).toBe(201);
    const towns = async () => (await page.ask('GET', '/registers/towns/entries')).status;
    expect(await towns()).toBe(404);
    const update = { 'data-register:towns': { anonymousRead: true } };
    await configure(forms.platform, 'platform', 'configuration-service', update);
    forms.advance(6 * minute);
    await expect.poll(towns).toBe(200);
    expect((await fetch(`${apply.forms.url}/apply/api/tenants/core/definitions/permit`)).status).toBe(404);
  });
});

it('a definition is not parsed for the page, and a change is shown', async () => {
  const read = async () => {
    const response = await fetch(`${apply.forms.url}/apply/api/tenants/demo/definitions/large`);
    expect(response.status).toBe(200);
    return response.text();
  };
  const define = (title: string) =>
    apply.forms.define({
      ...{ id: 'large', name: 'Large', anonymousApply: true },
      dataSchema: { title, examples: Array(90_000).fill({}) },
    });
  await define('First title');
  const first = await read();
  const parse = vi.spyOn(JSON, 'parse');
  const later = [await read(), await read(), await read()];
  const parsed = parse.mock.calls.filter(([text]) => String(text).includes('First title'));
  parse.mockRestore();
  expect(parsed).toHaveLength(0);
  expect(later).toEqual([first, first, first]);
  expect(JSON.parse(first)).toMatchObject({ id: 'large', tenantName: 'Demo', dataSchema: { title: 'First title' } });
  await define('Second title');
  expect(JSON.parse(await read())).toMatchObject({ dataSchema: { title: 'Second title' }, files: false });
});

it('a definition keeps the names of its fields on the page, whatever names other definitions have', async () => {
  for (const name of ['\\', '\n', '"', '\t']) {
    const dataSchema = { properties: { q: {}, [name]: {} } };
    await apply.forms.define({ id: 'names', name: 'Names', anonymousApply: true, dataSchema });
    const response = await fetch(`${apply.forms.url}/apply/api/tenants/demo/definitions/names`);
    expect(await response.text()).toContain(`"dataSchema":${JSON.stringify(dataSchema)}`);
  }
});

it('an upload gets 501 if there is no file service, and 400 if its name is not a file name', async () => {
  const page = browser();
  const { id } = await page.start();
  const upload = (name: string) =>
    page.ask('POST', `/forms/${id}/files?name=${encodeURIComponent(name)}`, {
      body: 'content',
      headers: { 'content-type': 'application/octet-stream' },
    });
  expect(await upload('plan.pdf')).toMatchObject({
    status: 501,
    body: { type: 'urn:formgate:problem:no-file-service' },
  });
  for (const name of ['../plan.pdf', '.', ' .. ', 'a\nb', 'x'.repeat(200), ''])
    expect((await upload(name)).status, name).toBe(400);
});
