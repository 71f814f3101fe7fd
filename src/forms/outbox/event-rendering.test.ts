// Validates every event's payload against its registered schema, for every state of a form and its definition.
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { createUrns } from '../../service/urn.ts';
import { type EventKind, eventKinds, events, eventTypesOf, renderEvent, wantsData } from './event-catalogue.ts';
import { type EventDefinition, formAfter, formDraftUrl } from './event-fields.ts';
import type { OutboxForm, OutboxRow } from './outbox.ts';

const eventTypes = eventTypesOf(events);

const urns = createUrns('urn:example');
const formId = '0198f6aa-7f5e-7c3a-9d57-3f6f0e1d2c3b';
const at = new Date('2026-08-20T17:00:00.000Z');
const actor = { id: 'subject-1', name: 'Intake' };

const form: OutboxForm = {
  status: 'Draft',
  created: new Date('2026-08-01T09:00:00.000Z'),
  createdBy: actor,
  lastAccessed: new Date('2026-08-05T09:00:00.000Z'),
  locked: null,
  submitted: null,
  applicant: { addressAs: 'Ana', channels: [{ channel: 'email', address: 'canary@example.org' }] },
  subscriberId: '66aa00bb11cc22dd33ee44ff',
};

const definition: EventDefinition = {
  id: 'permit',
  name: 'Permit',
  formDraftUrlTemplate: 'https://forms.example.org/permit/{{id}}',
  includeDataInSubmission: true,
};

function row(kind: EventKind, changes: Partial<OutboxRow> = {}): OutboxRow<EventKind> {
  const facts = {
    definitionId: 'permit',
    actor,
    lockOn: '2026-08-23T17:00:00.000Z',
    deleteOn: '2026-09-04T17:00:00.000Z',
    files: ['urn:example:platform:file-service:v1:/files/0f0e'],
    subscriberId: '66aa00bb11cc22dd33ee44ff',
  };
  return {
    sequence: '9007199254740993',
    formId,
    tenantId: urns.tenant('t1'),
    facts,
    created: at,
    attempts: 1,
    form,
    ...changes,
    kind,
  };
}

function schemaErrors(kind: EventKind, payload: unknown) {
  const ajv = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true });
  addFormats.default(ajv);
  const schema = eventTypes.find(({ name }) => name === kind)?.payloadSchema;
  const validate = ajv.compile(schema ?? false);
  return validate(payload) ? [] : validate.errors;
}

describe('form events', () => {
  it('have one registered schema each', () => {
    expect(eventTypes.map(({ name }) => name).sort()).toEqual([...eventKinds].sort());
  });

  describe.each(eventKinds)('%s', (kind) => {
    const states: [string, Partial<OutboxRow>, EventDefinition | undefined][] = [
      ['a form and its definition', {}, definition],
      ['a form without applicant', { form: { ...form, applicant: { channels: [] } } }, definition],
      ['a form whose definition was deleted', {}, undefined],
      [
        'a form that was submitted and archived since',
        { form: { ...form, status: 'Archived', submitted: at } },
        definition,
      ],
      ['a form that was deleted', { form: undefined }, definition],
      ['only the row itself', { form: undefined, facts: { definitionId: 'permit' } }, undefined],
    ];

    it.each(states)('has a payload that its registered schema accepts, rendered from %s', (_, changes, known) => {
      const event = renderEvent({ row: row(kind, changes), definition: known, data: null, urns });
      expect(schemaErrors(kind, JSON.parse(JSON.stringify(event.payload)))).toEqual([]);
    });

    it('of a pod of version 0.2.0 is accepted too, because both versions run during a rollout', () => {
      const { payload } = renderEvent({ row: row(kind), definition, data: null, urns });
      const { language, inFrench, keepUrl, deleteUrl, wasDraft, ...before } = payload;
      const { reference, ...formBefore } = (payload.form ?? {}) as Record<string, unknown>;
      const sent = payload.form ? { ...before, form: formBefore } : before;
      expect(schemaErrors(kind, JSON.parse(JSON.stringify(sent)))).toEqual([]);
    });

    it('never contains an address, a channel or the subscriber', () => {
      const text = JSON.stringify(renderEvent({ row: row(kind), definition, data: null, urns }));
      expect(text).not.toMatch(/canary|channel|66aa00bb/);
    });

    it('names namespace, tenant, time, form and definition, and has the same key at every delivery', () => {
      const event = renderEvent({ row: row(kind), definition, data: null, urns });
      const again = renderEvent({ row: row(kind, { attempts: 9, form: undefined }), definition, data: null, urns });
      expect(event).toMatchObject({
        namespace: 'form-service',
        name: kind,
        timestamp: at.toISOString(),
        correlationId: urns.form(formId),
        tenantId: urns.tenant('t1'),
        context: { definitionId: 'permit', formId, idempotencyKey: `${formId}:9007199254740993`, notice: 'due' },
      });
      expect(again.context).toEqual(event.context);
    });
  });

  it('show the status that the form had at the event, not at delivery', () => {
    const later: OutboxForm = { ...form, status: 'Archived', submitted: new Date('2026-08-25T00:00:00.000Z') };
    const statuses = eventKinds.map((kind) => {
      const { payload } = renderEvent({ row: row(kind, { form: later }), definition, data: null, urns });
      return [kind, (payload.form as { status?: string; submitted?: string } | undefined)?.status];
    });
    expect(Object.fromEntries(statuses)).toEqual({
      'form-created': 'Draft',
      'form-submitted': 'Submitted',
      'form-expiring': 'Draft',
      'form-locked': 'Locked',
      'form-unlocked': 'Draft',
      'form-to-draft': 'Draft',
      'form-archived': undefined,
      'form-deleted': undefined,
    });
    const created = renderEvent({ row: row('form-created', { form: later }), definition, data: null, urns });
    expect(created.payload.form).toMatchObject({ submitted: null, locked: null, created: at.toISOString() });
  });

  it('show when the form was submitted, also after its submission', () => {
    const submitted = new Date('2026-08-02T00:00:00.000Z');
    const source = { definition, data: null, urns };
    const after = { ...source, row: row('form-expiring', { form: { ...form, submitted } }) };
    expect(formAfter('Submitted').render(after)).toMatchObject({ submitted: submitted.toISOString() });
    const before = { ...source, row: row('form-submitted') };
    expect(formAfter('Submitted', 'submits').render(before)).toMatchObject({ submitted: at.toISOString() });
  });

  it('name form-service-job as the actor of a deletion by the expiry, and the form’s files', () => {
    const file = 'urn:example:platform:file-service:v1:/files/0f0e';
    const facts = { definitionId: 'permit', files: [file, 'other form data', ''] };
    const { payload } = renderEvent({ row: row('form-deleted', { facts }), definition, data: null, urns });
    expect(payload).toEqual({
      urn: urns.form(formId),
      id: formId,
      language: 'en',
      inFrench: false,
      wasDraft: false,
      deletedBy: { id: 'form-service-job', name: 'form-service-job' },
      definition: { id: 'permit', name: 'Permit', description: null },
      files: [file],
    });
  });
});

describe('form data in form-submitted', () => {
  const submitted = { form: { ...form, status: 'Submitted', submitted: at } } satisfies Partial<OutboxRow>;

  it('is sent if the definition asks for it', () => {
    expect(wantsData(row('form-submitted', submitted), definition)).toBe(true);
    const event = renderEvent({ row: row('form-submitted', submitted), definition, data: { trade: 'Bakery' }, urns });
    expect(event.payload.data).toEqual({ trade: 'Bakery' });
    expect(schemaErrors('form-submitted', event.payload)).toEqual([]);
  });

  it.each([
    [
      'the definition does not ask for it',
      row('form-submitted', submitted),
      { ...definition, includeDataInSubmission: false },
    ],
    ['the definition was deleted', row('form-submitted', submitted), undefined],
    ['it is another event', row('form-created', submitted), definition],
    ['the form is a draft again', row('form-submitted', { form: { ...submitted.form, status: 'Draft' } }), definition],
    [
      'the form was submitted again since',
      row('form-submitted', { form: { ...submitted.form, submitted: new Date() } }),
      definition,
    ],
    ['the form was deleted', row('form-submitted', { form: undefined }), definition],
  ])('is not sent if %s', (_, source, known) => {
    expect(wantsData(source, known)).toBe(false);
  });
});

describe('the link to a draft', () => {
  it.each([
    ['https://forms.example.org/{{id}}', `https://forms.example.org/${formId}`],
    ['https://forms.example.org/{{ id }}/edit', `https://forms.example.org/${formId}/edit`],
    ['http://localhost:8080/apply?form={id}', `http://localhost:8080/apply?form=${formId}`],
    ['javascript:alert({{id}})', null],
    ['/relative/{{id}}', null],
    ['', null],
  ])('made from %s is %s', (formDraftUrlTemplate, url) => {
    expect(formDraftUrl({ id: 'permit', name: 'Permit', formDraftUrlTemplate }, formId)).toBe(url);
  });
});
