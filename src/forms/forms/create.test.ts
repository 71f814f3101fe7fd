// Tests each rule for creating drafts, over HTTP with the platform server.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anonymous, configure, permit, startTestForms, type TestForms } from '../../../test/support/forms.ts';
import { keepWrittenFacts } from '../../../test/support/written-facts.ts';

let forms: TestForms;
beforeAll(async () => {
  // The cache keeps documents for longer than a test waits, so a new definition is only found if a miss reads it.
  forms = await startTestForms({ env: () => ({ PLATFORM_CACHE_TTL: 'PT1H' }) });
  await forms.define({ ...permit, id: 'once', oneFormPerApplicant: true });
  await forms.define({ ...permit, id: 'signed-in-only', anonymousApply: false });
});
afterAll(() => forms.close());

describe('POST /form/v1/forms', () => {
  it('returns 201 with exactly id, definitionId, status, created, createdBy and lastAccessed', async () => {
    const { status, body, headers } = await forms.ask('POST', '', {
      as: 'intake',
      body: { definitionId: 'permit', applicant: anonymous() },
    });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      definitionId: 'permit',
      status: 'Draft',
      created: expect.stringMatching(/Z$/),
      createdBy: { id: 'intake', name: 'intake' },
      lastAccessed: expect.stringMatching(/Z$/),
    });
    expect(headers.get('location')).toBe(`/form/v1/forms/${(body as { id: string }).id}`);
  });

  it('returns no address', async () => {
    const { text } = await forms.ask('POST', '', {
      as: 'intake',
      body: { definitionId: 'permit', applicant: anonymous('secret@example.org') },
    });
    expect(text).not.toContain('secret');
  });

  it.each(['platform', 'form-service'])(
    'finds a definition within seconds after it was configured in %s, although it was just looked up in vain',
    async (namespace) => {
      const id = `new-${randomUUID().slice(0, 8)}`;
      const create = async () => (await forms.ask('POST', '', { as: 'alice', body: { definitionId: id } })).status;
      expect(await create()).toBe(404);
      const definition = { ...permit, id };
      if (namespace === 'platform') await configure(forms.platform, namespace, 'form-service', { [id]: definition });
      else await configure(forms.platform, namespace, id, definition);
      await expect.poll(create).toBe(201);
    },
  );

  it('returns 404 for an unknown definition', async () => {
    const body = { definitionId: 'no-such-definition', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(404);
  });

  it('returns 403 to an intake application if the definition does not permit anonymous applicants', async () => {
    const body = { definitionId: 'signed-in-only', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(403);
  });

  it.each(['alice', 'clerk'] as const)('allows %s to create a form by a role of the definition', async (as) => {
    const { status, body } = await forms.ask('POST', '', { as, body: { definitionId: 'signed-in-only' } });
    expect(status).toBe(201);
    expect(body).toMatchObject({ createdBy: { id: as } });
  });

  it.each(['admin', 'assessor', 'nobody'] as const)(
    'returns 403 to %s, who has no role that may create a form',
    async (as) => {
      const body = { definitionId: 'permit', applicant: anonymous() };
      expect((await forms.ask('POST', '', { as, body })).status).toBe(403);
    },
  );

  it('finds a definition in its second location, the namespace form-service', async () => {
    await configure(forms.platform, 'form-service', 'second-home', { ...permit, id: 'second-home' });
    const body = { definitionId: 'second-home', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(201);
  });

  it('ignores unknown fields of a definition', async () => {
    await forms.define({ ...permit, id: 'with-more', submissionRecords: true, ministry: 'Ministry of Tests' });
    const body = { definitionId: 'with-more', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(201);
  });
});

describe('the applicant', () => {
  const ask = (applicant: unknown, as: 'intake' | 'alice' = 'intake') =>
    forms.ask('POST', '', { as, body: { definitionId: 'permit', applicant } });

  it('is required of an intake application', async () => {
    const { status, body } = await ask(undefined);
    expect(status).toBe(400);
    expect(body).toMatchObject({ errors: [{ pointer: '/applicant' }] });
  });

  it.each([[{ addressAs: 'Ana' }], [{ addressAs: 'Ana', channels: [] }]])(
    'needs at least one channel if an intake application creates the form (%j)',
    async (applicant) => {
      const { status, body } = await ask(applicant);
      expect(status).toBe(400);
      expect(body).toMatchObject({ errors: [{ pointer: '/applicant/channels' }] });
    },
  );

  it.each([
    [{ channel: 'email', address: 'no-address' }, '/applicant/channels/0/address'],
    [{ channel: 'email', address: 'a@b' }, '/applicant/channels/0/address'],
    [{ channel: 'sms', address: 'call me' }, '/applicant/channels/0/address'],
    [{ channel: 'pigeon', address: 'x' }, '/applicant/channels/0/channel'],
    [{ channel: 'email' }, '/applicant/channels/0/address'],
    [{ channel: 'email', address: 'a@example.org', verified: true }, '/applicant/channels/0/verified'],
  ])('has only valid email and sms channels: %j is 400', async (channel, pointer) => {
    const { status, body } = await ask({ channels: [channel] });
    expect(status).toBe(400);
    expect((body as { errors: { pointer: string }[] }).errors.map((error) => error.pointer)).toContain(pointer);
  });

  it('may have an sms channel', async () => {
    const sms = { channel: 'sms', address: '+1 (555) 010-9999' };
    expect((await ask({ channels: [sms, { channel: 'email', address: 'and@example.org' }] })).status).toBe(201);
  });

  it('is the caller by default, unless the caller is an intake application', async () => {
    const { body } = await ask(undefined, 'alice');
    const { rows } = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [(body as { id: string }).id]);
    expect(rows[0].applicant).toEqual({
      addressAs: 'Alice',
      channels: [{ channel: 'email', address: 'alice@example.com' }],
    });
  });

  it('is the caller also for what an applicant leaves out', async () => {
    const { body } = await ask({ language: 'fr' }, 'alice');
    const { rows } = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [(body as { id: string }).id]);
    expect(rows[0].applicant).toEqual({
      addressAs: 'Alice',
      channels: [{ channel: 'email', address: 'alice@example.com' }],
      language: 'fr',
    });
    const silent = (await ask({ channels: [] }, 'alice')).body as { id: string };
    const chosen = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [silent.id]);
    expect(chosen.rows[0].applicant.channels).toEqual([]);
  });

  it.each(['a@b', 'not an address', `${'x'.repeat(250)}@example.org`])(
    'has no channel if notices could not be sent to the email address of the caller’s token (%s)',
    async (email) => {
      const token = await forms.tokenWith({ realmRoles: ['applicant'], claims: { name: 'Ana', email } });
      const { status, body } = await forms.ask('POST', '', { token, body: { definitionId: 'permit' } });
      expect(status).toBe(201);
      const { rows } = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [
        (body as { id: string }).id,
      ]);
      expect(rows[0].applicant).toEqual({ addressAs: 'Ana', channels: [] });
    },
  );

  it('is stored with email addresses in lower case, as the notification service compares them', async () => {
    const { body } = await ask(anonymous('Mixed.Case@Example.ORG'));
    const { rows } = await forms.pool.query('SELECT applicant FROM forms WHERE id = $1', [(body as { id: string }).id]);
    expect(rows[0].applicant.channels[0].address).toBe('mixed.case@example.org');
  });
});

describe('bodies of a create', () => {
  it.each([
    ['nothing', undefined, ''],
    ['no definitionId', { applicant: anonymous() }, '/definitionId'],
    ['a number for definitionId', { definitionId: 7 }, '/definitionId'],
    ['51 characters of definitionId', { definitionId: 'x'.repeat(51) }, '/definitionId'],
    ['a colon in definitionId', { definitionId: 'a:b' }, '/definitionId'],
    ['an unknown field', { definitionId: 'permit', status: 'Draft' }, '/status'],
    ['an array', [], ''],
  ])('with %s are 400 with a pointer', async (_name, body, pointer) => {
    const response = await forms.ask('POST', '', { as: 'intake', body });
    expect(response.status).toBe(400);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect((response.body as { errors: { pointer: string }[] }).errors.map((error) => error.pointer)).toContain(
      pointer,
    );
  });
});

describe('oneFormPerApplicant', () => {
  it('refuses a second create with 409 and the existing form’s id, in any status of that form', async () => {
    const first = await forms.draft({ as: 'alice', definitionId: 'once' });
    await forms.setStatus(first, 'Submitted');
    const { status, body } = await forms.ask('POST', '', { as: 'alice', body: { definitionId: 'once' } });
    expect(status).toBe(409);
    expect(body).toMatchObject({ type: 'urn:formgate:problem:form-exists', formId: first });
  });

  it('does not keep another applicant from creating a form', async () => {
    expect((await forms.ask('POST', '', { as: 'bob', body: { definitionId: 'once' } })).status).toBe(201);
  });

  it('counts forms that are older than the setting', async () => {
    const definition = { ...permit, id: 'once-later' };
    await forms.define(definition);
    const first = await forms.draft({ as: 'alice', definitionId: 'once-later' });
    await forms.define({ ...definition, oneFormPerApplicant: true });
    const { status, body } = await forms.ask('POST', '', { as: 'alice', body: { definitionId: 'once-later' } });
    expect(status).toBe(409);
    expect(body).toMatchObject({ formId: first });
  });

  it('does not apply to anonymous applicants', async () => {
    const body = { definitionId: 'once', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(201);
    expect((await forms.ask('POST', '', { as: 'intake', body })).status).toBe(201);
  });

  it('does not apply to a clerk, who fills in forms for others', async () => {
    const body = { definitionId: 'once', applicant: anonymous() };
    expect((await forms.ask('POST', '', { as: 'clerk', body })).status).toBe(201);
    expect((await forms.ask('POST', '', { as: 'clerk', body })).status).toBe(201);
  });

  it('does not count forms that a person filled in for others, as a clerk', async () => {
    const token = await forms.tokenWith({ realmRoles: ['applicant', 'clerk'] });
    const create = (body: object) => forms.ask('POST', '', { token, body: { definitionId: 'once', ...body } });
    expect((await create({ applicant: anonymous() })).status).toBe(201);
    const own = await create({});
    expect(own.status).toBe(201);
    expect((await create({ applicant: anonymous() })).status).toBe(201);
    const { status, body } = await create({});
    expect(status).toBe(409);
    expect(body).toMatchObject({ formId: (own.body as { id: string }).id });
  });

  it('admits one of ten concurrent creates', async () => {
    const token = await forms.tokenWith({ realmRoles: ['applicant'] });
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => forms.ask('POST', '', { token, body: { definitionId: 'once' } })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(9).fill(409)]);
    const [made] = responses.filter(({ status }) => status === 201).map(({ body }) => (body as { id: string }).id);
    for (const { status, body } of responses) if (status === 409) expect(body).toMatchObject({ formId: made });
  });

  it('is true by default', async () => {
    const { oneFormPerApplicant: _, ...silent } = { ...permit, id: 'silent' };
    await forms.define(silent);
    await forms.draft({ as: 'alice', definitionId: 'silent' });
    expect((await forms.ask('POST', '', { as: 'alice', body: { definitionId: 'silent' } })).status).toBe(409);
  });
});

describe('Idempotency-Key of a create', () => {
  const ask = (key: string, body: object, as: 'intake' | 'otherIntake' = 'intake') =>
    forms.ask('POST', '', { as, body, headers: { 'idempotency-key': key } });
  const body = { definitionId: 'permit', applicant: anonymous() };

  it('returns the first response to the same key and body, and creates one form', async () => {
    const key = randomUUID();
    const [first, second] = [await ask(key, body), await ask(key, body)];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.text).toBe(first.text);
  });

  it('returns the first response even if the form has changed since', async () => {
    const key = randomUUID();
    const first = await ask(key, body);
    await forms.setStatus((first.body as { id: string }).id, 'Submitted');
    expect((await ask(key, body)).text).toBe(first.text);
  });

  it('is refused with 422 if the body is another', async () => {
    const key = randomUUID();
    await ask(key, body);
    const { status, body: problem } = await ask(key, { ...body, applicant: anonymous() });
    expect(status).toBe(422);
    expect(problem).toMatchObject({ type: 'urn:formgate:problem:idempotency-mismatch' });
  });

  it('belongs to one account: the same key of another account is another key', async () => {
    const key = randomUUID();
    const [first, second] = [await ask(key, body), await ask(key, body, 'otherIntake')];
    expect(second.status).toBe(201);
    expect((second.body as { id: string }).id).not.toBe((first.body as { id: string }).id);
  });

  it('is valid for 24 hours', async () => {
    const key = randomUUID();
    const first = await ask(key, body);
    forms.advance(24 * 3_600_000 - 60_000);
    expect((await ask(key, body)).text).toBe(first.text);
    forms.advance(60_000);
    const later = await ask(key, body);
    expect(later.status).toBe(201);
    expect(later.text).not.toBe(first.text);
  });

  it('lets ten concurrent creates create one form', async () => {
    const key = randomUUID();
    const responses = await Promise.all(Array.from({ length: 10 }, () => ask(key, body)));
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(responses[0]?.status).toBe(201);
  });

  it('is deleted with the form', async () => {
    const key = randomUUID();
    const first = await ask(key, body);
    const { id } = first.body as { id: string };
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    const { rows } = await forms.pool.query('SELECT FROM idempotency_keys WHERE form_id = $1', [id]);
    expect(rows).toHaveLength(0);
    expect((await ask(key, body)).text).not.toBe(first.text);
  });

  it('is stored as HMACs of key and body only', async () => {
    const address = 'idempotent-canary@example.org';
    await ask('idempotency-canary', { definitionId: 'permit', applicant: anonymous(address) });
    const { rows } = await forms.pool.query<{ all: string }>(
      "SELECT string_agg(k::text, E'\\n') AS all FROM idempotency_keys k",
    );
    const kept = rows[0]?.all ?? '';
    expect(kept).not.toContain('idempotent-canary');
    expect(kept).not.toContain('idempotency-canary');
    expect(kept).not.toContain(Buffer.from('idempotency-canary').toString('hex'));
  });

  it('returns the first response also to an applicant who may have only one form', async () => {
    const token = await forms.tokenWith({ realmRoles: ['applicant'] });
    const once = () =>
      forms.ask('POST', '', { token, body: { definitionId: 'once' }, headers: { 'idempotency-key': 'k' } });
    const first = await once();
    expect(first.status).toBe(201);
    expect((await once()).text).toBe(first.text);
  });

  it.each(['', 'x'.repeat(256), 'caf\u00e9'])('of %j is 400', async (key) => {
    const response = await ask(key, body);
    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({ errors: [{ pointer: '/headers/idempotency-key' }] });
  });
});

describe('the outbox rows of a create', () => {
  it('are subscribe and form-created, in this order and in the form’s transaction', async () => {
    const written = await keepWrittenFacts(forms.pool);
    const rows = await written(await forms.draft());
    expect(rows.map(({ kind, facts }) => ({ kind, facts }))).toEqual([
      { kind: 'subscribe', facts: { definitionId: 'permit' } },
      { kind: 'form-created', facts: { definitionId: 'permit', actor: { id: 'intake', name: 'intake' } } },
    ]);
  });

  it('give each form its own subscriber', async () => {
    const id = await forms.draft();
    await expect
      .poll(
        async () =>
          (await forms.pool.query('SELECT subscriber_id FROM forms WHERE id = $1', [id])).rows[0].subscriber_id,
      )
      .toMatch(/^[0-9a-f]{24}$/);
  });
});
