// Tests each rule for submit, unlock, archive, to-draft, hold and release, over HTTP. roles.test.ts tests access.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permit, startTestForms, type TestForms, type Who } from '../../../test/support/forms.ts';
import { keepWrittenFacts } from '../../../test/support/written-facts.ts';

let forms: TestForms;
beforeAll(async () => {
  forms = await startTestForms();
});
afterAll(() => forms.close());

const minute = 60_000;
const operate = (id: string, operation: string, as: Who = 'admin', headers: Record<string, string> = {}) =>
  forms.ask('POST', `/${id}`, { as, body: { operation }, headers });
const save = (id: string, data: object, as: Who = 'intake') =>
  forms.ask('PUT', `/${id}/data`, { as, body: { data, files: {} } });
const show = async (id: string) => (await forms.ask('GET', `/${id}`, { as: 'admin' })).body as Record<string, unknown>;
const events = async (id: string) => {
  const { rows } = await forms.pool.query<{ kind: string }>(
    'SELECT kind FROM outbox WHERE form_id = $1 ORDER BY sequence',
    [id],
  );
  return rows.map(({ kind }) => kind).filter((kind) => kind.startsWith('form-'));
};

async function submitted(): Promise<string> {
  const id = await forms.draft();
  await save(id, { name: 'Ana' });
  expect((await operate(id, 'submit', 'intake')).status).toBe(200);
  return id;
}

describe('submit', () => {
  it('returns exactly {id, status: Submitted, submitted}', async () => {
    const id = await forms.draft();
    await save(id, { name: 'Ana' });
    const { status, body } = await operate(id, 'submit', 'intake');
    expect(status).toBe(200);
    expect(body).toEqual({ id, status: 'Submitted', submitted: expect.stringMatching(/Z$/) });
    expect(await show(id)).toMatchObject({ status: 'Submitted', submitted: (body as { submitted: string }).submitted });
    expect(await events(id)).toEqual(['form-created', 'form-submitted']);
  });

  it('of invalid form data is 400 with a pointer to every problem, and changes nothing', async () => {
    const id = await forms.draft();
    await save(id, { age: -1.5 });
    const { status, body } = await operate(id, 'submit', 'intake');
    expect(status).toBe(400);
    expect((body as { errors: object[] }).errors).toEqual([
      { pointer: '/data/name', detail: 'is required' },
      { pointer: '/data/age', detail: 'must be integer' },
      { pointer: '/data/age', detail: 'must be >= 0' },
    ]);
    expect(await show(id)).toMatchObject({ status: 'Draft', submitted: null });
    expect(await events(id)).toEqual(['form-created']);
  });

  it('of a form that is no longer a draft is 409', async () => {
    expect(await operate(await submitted(), 'submit', 'intake')).toMatchObject({
      status: 409,
      body: { type: 'urn:formgate:problem:form-not-draft', formStatus: 'Submitted' },
    });
  });

  it('requested ten times concurrently happens once', async () => {
    const id = await forms.draft();
    await save(id, { name: 'Ana' });
    const responses = await Promise.all(Array.from({ length: 10 }, () => operate(id, 'submit', 'intake')));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(9).fill(409)]);
    expect(await events(id)).toEqual(['form-created', 'form-submitted']);
  });

  it('repeated by the same caller with the same Idempotency-Key returns the first response', async () => {
    const id = await forms.draft();
    await save(id, { name: 'Ana' });
    const headers = { 'idempotency-key': randomUUID() };
    const first = await operate(id, 'submit', 'intake', headers);
    forms.advance(minute);
    const second = await operate(id, 'submit', 'intake', headers);
    expect([second.status, second.text]).toEqual([200, first.text]);
    expect(await events(id)).toEqual(['form-created', 'form-submitted']);
  });

  it('with If-Match submits only that version, and returns 412 if the form data was changed since', async () => {
    const id = await forms.draft();
    const { headers: first } = await save(id, { name: 'Ana' });
    const { headers: second } = await save(id, { name: 'Bo' });
    const submit = (etag: string | null) =>
      operate(id, 'submit', 'intake', { 'if-match': etag ?? '', 'idempotency-key': 'the key of one submission' });
    expect(await submit(first.get('etag'))).toMatchObject({
      status: 412,
      body: { type: 'urn:formgate:problem:stale' },
    });
    expect(await submit('x')).toMatchObject({ status: 400, body: { errors: [{ pointer: '/headers/if-match' }] } });
    expect(await show(id)).toMatchObject({ status: 'Draft' });
    const done = await submit(second.get('etag'));
    expect(done.status).toBe(200);
    expect((await submit(first.get('etag'))).text).toBe(done.text);
  });

  it('repeated with another key, by another caller or after 24 hours is 409', async () => {
    const id = await forms.draft();
    await save(id, { name: 'Ana' });
    const headers = { 'idempotency-key': randomUUID() };
    await operate(id, 'submit', 'intake', headers);
    expect((await operate(id, 'submit', 'intake', { 'idempotency-key': randomUUID() })).status).toBe(409);
    expect((await operate(id, 'submit', 'otherIntake', headers)).status).toBe(409);
    forms.advance(24 * 60 * minute);
    expect((await operate(id, 'submit', 'intake', headers)).status).toBe(409);
  });

  it('with the same key after a to-draft submits again', async () => {
    const id = await forms.draft();
    await save(id, { name: 'Ana' });
    const headers = { 'idempotency-key': randomUUID() };
    const first = await operate(id, 'submit', 'intake', headers);
    await operate(id, 'to-draft');
    forms.advance(minute);
    const second = await operate(id, 'submit', 'intake', headers);
    expect(second.status).toBe(200);
    expect(second.text).not.toBe(first.text);
    expect((await operate(id, 'submit', 'intake', headers)).text).toBe(second.text);
  });

  it('never submits form data that it has not validated, also if a save comes in between', async () => {
    for (let round = 0; round < 10; round += 1) {
      const id = await forms.draft();
      await save(id, { name: 'Ana' });
      const [response] = await Promise.all([operate(id, 'submit', 'intake'), save(id, { age: 'invalid' })]);
      const { body } = await forms.ask('GET', `/${id}/data`, { as: 'admin' });
      const { data } = body as { data: object };
      expect(data).toEqual(response.status === 200 ? { name: 'Ana' } : { age: 'invalid' });
    }
  });

  it('returns 409 if the definition no longer exists', async () => {
    const id = await forms.draft();
    await forms.pool.query("UPDATE forms SET definition_id = 'gone' WHERE id = $1", [id]);
    expect((await operate(id, 'submit', 'intake')).status).toBe(409);
  });

  it('sends an event with the actor and the same time as the response', async () => {
    const written = await keepWrittenFacts(forms.pool);
    const id = await submitted();
    const row = (await written(id)).find(({ kind }) => kind === 'form-submitted');
    expect(row?.facts).toEqual({ definitionId: 'permit', actor: { id: 'intake', name: 'intake' } });
    expect(row?.created.toISOString()).toBe((await show(id)).submitted);
  });
});

describe('unlock', () => {
  it('makes a Locked form a Draft again, with lastAccessed now', async () => {
    const id = await forms.draft();
    await forms.setStatus(id, 'Locked');
    forms.advance(minute);
    const { status, body } = await operate(id, 'unlock');
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, status: 'Draft', locked: null });
    const { created, lastAccessed } = body as Record<string, string>;
    expect(Date.parse(lastAccessed ?? '') - Date.parse(created ?? '')).toBeGreaterThanOrEqual(minute);
    expect(await events(id)).toEqual(['form-created', 'form-unlocked']);
    expect((await save(id, {})).status).toBe(200);
  });

  it('succeeds even if the periods of the expiry cannot be read afterwards', async () => {
    const id = await forms.draft();
    await forms.setStatus(id, 'Locked');
    // The periods are cached for a minute.
    forms.advance(2 * minute);
    await forms.pool.query('ALTER TABLE reconciler_runs RENAME TO hidden_runs');
    const { status, body } = await operate(id, 'unlock');
    await forms.pool.query('ALTER TABLE hidden_runs RENAME TO reconciler_runs');
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, status: 'Draft', lockOn: null });
  });
});

describe('archive', () => {
  it('makes a Submitted form Archived', async () => {
    const id = await submitted();
    expect(await operate(id, 'archive')).toMatchObject({ status: 200, body: { id, status: 'Archived' } });
    expect(await events(id)).toEqual(['form-created', 'form-submitted', 'form-archived']);
  });
});

describe('to-draft', () => {
  it('makes a Submitted form a Draft again, with lastAccessed now', async () => {
    const id = await submitted();
    forms.advance(minute);
    const { status, body } = await operate(id, 'to-draft', 'assessor');
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, status: 'Draft' });
    const { created, lastAccessed } = body as Record<string, string>;
    expect(Date.parse(lastAccessed ?? '') - Date.parse(created ?? '')).toBeGreaterThanOrEqual(minute);
    expect(await events(id)).toEqual(['form-created', 'form-submitted', 'form-to-draft']);
    expect((await save(id, { name: 'Ana' })).status).toBe(200);
  });

  it('changes the ETag, so that a save from before it is stale', async () => {
    const id = await forms.draft();
    const tag = (await save(id, { name: 'Ana' })).headers.get('etag') ?? '';
    await operate(id, 'submit', 'intake');
    await operate(id, 'to-draft');
    const stale = await forms.ask('PUT', `/${id}/data`, {
      as: 'intake',
      body: { data: {}, files: {} },
      headers: { 'if-match': tag },
    });
    expect(stale.status).toBe(412);
  });
});

describe('to-draft of a form with very many undelivered events', () => {
  it('is 503 until some of them are delivered', async () => {
    const id = await submitted();
    await forms.pool.query('UPDATE outbox SET accepted = now() WHERE form_id = $1', [id]);
    await forms.pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before)
       SELECT $1, tenant_id, 'form-to-draft', '{}', now(), CASE WHEN n > 1000 THEN 'infinity' ELSE now() + interval '1 day' END
       FROM forms, generate_series(1, 1100) n WHERE id = $1`,
      [id],
    );
    const refused = await operate(id, 'to-draft', 'assessor');
    expect(refused).toMatchObject({ status: 503, body: { type: 'urn:formgate:problem:busy' } });
    expect(refused.headers.get('retry-after')).toBe('60');
    expect(await show(id)).toMatchObject({ status: 'Submitted' });

    await forms.pool.query(
      `UPDATE outbox SET accepted = now()
       WHERE sequence = (SELECT max(sequence) FROM outbox WHERE form_id = $1 AND not_before < 'infinity')`,
      [id],
    );
    expect((await operate(id, 'to-draft', 'assessor')).status).toBe(200);
  });
});

describe('hold', () => {
  it('is shown with the form, and repeating it changes nothing', async () => {
    const id = await forms.draft();
    expect((await operate(id, 'hold')).body).toMatchObject({ held: true });
    const before = await show(id);
    forms.advance(minute);
    expect((await operate(id, 'hold')).body).toEqual(before);
  });

  it('prevents any deletion of the form', async () => {
    const id = await forms.draft({ as: 'alice' });
    await operate(id, 'hold');
    for (const as of ['admin', 'alice'] as const)
      expect(await forms.ask('DELETE', `/${id}`, { as })).toMatchObject({
        status: 409,
        body: { type: 'urn:formgate:problem:form-held' },
      });
    await operate(id, 'release');
    expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
  });

  it('does not prevent the applicant from working on the draft', async () => {
    const id = await forms.draft();
    await operate(id, 'hold');
    expect((await save(id, { name: 'Ana' })).status).toBe(200);
    expect((await operate(id, 'submit', 'intake')).status).toBe(200);
  });
});

describe('release', () => {
  it.each([
    ['Draft', 'lastAccessed'],
    ['Locked', 'locked'],
  ])('of a %s form restarts its period: %s is now', async (status, clock) => {
    const id = await forms.draft();
    if (status === 'Locked') await forms.setStatus(id, status);
    const before = Date.parse((await show(id))[clock] as string);
    await operate(id, 'hold');
    forms.advance(minute);
    const { body } = await operate(id, 'release');
    expect(body).toMatchObject({ held: false, status });
    expect(Date.parse((body as Record<string, string>)[clock] ?? '') - before).toBeGreaterThanOrEqual(minute);
  });

  it('of a form that is not held changes nothing', async () => {
    const id = await forms.draft();
    const before = await show(id);
    forms.advance(minute);
    expect((await operate(id, 'release')).body).toEqual(before);
  });
});

describe('bodies of an operation', () => {
  it.each([
    ['an unknown operation', { operation: 'lock' }, '/operation'],
    ['no operation', {}, '/operation'],
    ['an unknown field', { operation: 'submit', dryRun: true }, '/dryRun'],
  ])('with %s are 400 with a pointer', async (_name, body, pointer) => {
    const response = await forms.ask('POST', `/${await forms.draft()}`, { as: 'intake', body });
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
  });
});

describe('the data schema of a definition', () => {
  it('may be of draft 7, 2019-09 and 2020-12, by its $schema', async () => {
    const tuple = { items: [{ type: 'string' }], additionalItems: false };
    const prefix = { prefixItems: [{ type: 'string' }], items: false };
    const schemas = [
      ['seven', 'http://json-schema.org/draft-07/schema#', tuple],
      ['nineteen', 'https://json-schema.org/draft/2019-09/schema', tuple],
      ['twenty', 'https://json-schema.org/draft/2020-12/schema', prefix],
    ] as const;
    for (const [id, $schema, list] of schemas) {
      await forms.define({ ...permit, id, dataSchema: { $schema, properties: { list } } });
      const form = await forms.draft({ definitionId: id });
      await save(form, { list: ['a', 'b'] });
      expect([id, (await operate(form, 'submit', 'intake')).status]).toEqual([id, 400]);
      await save(form, { list: ['a'] });
      expect([id, (await operate(form, 'submit', 'intake')).status]).toEqual([id, 200]);
    }
  });

  it('is the current one: an edit within the same revision takes effect', async () => {
    await forms.define({ ...permit, id: 'edited', dataSchema: { required: ['old'] } });
    const id = await forms.draft({ definitionId: 'edited' });
    await save(id, { fresh: 1 });
    expect((await operate(id, 'submit', 'intake')).status).toBe(400);
    await forms.define({ ...permit, id: 'edited', dataSchema: { required: ['fresh'] } });
    expect((await operate(id, 'submit', 'intake')).status).toBe(200);
  });

  it.each([
    ['refers to another document', { $ref: 'https://example.org/other.json' }, '/$ref'],
    ['names another dialect', { $schema: 'http://json-schema.org/draft-03/schema#' }, '/$schema'],
  ])('that %s makes a submit 409 with a pointer, and no new draft is created', async (_name, dataSchema, pointer) => {
    const id = `broken-${randomUUID().slice(0, 8)}`;
    await forms.define({ ...permit, id });
    const form = await forms.draft({ definitionId: id });
    await save(form, { name: 'Ana' });
    await forms.define({ ...permit, id, dataSchema });
    const refused = {
      status: 409,
      body: {
        type: 'urn:formgate:problem:definition-invalid',
        detail: expect.stringContaining(id),
        errors: [{ pointer: `/dataSchema${pointer}`, detail: expect.any(String) }],
      },
    };
    expect(await operate(form, 'submit', 'intake')).toMatchObject(refused);
    const body = { definitionId: id, applicant: { channels: [{ channel: 'email', address: 'ana@example.org' }] } };
    expect(await forms.ask('POST', '', { as: 'intake', body })).toMatchObject(refused);
    const { rows } = await forms.pool.query('SELECT id FROM forms WHERE definition_id = $1', [id]);
    expect(rows).toEqual([{ id: form }]);
  });
});
