// Renders the default texts and the documented French texts for real events, with the platform server's template
// engine.
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { createNoticeRenderer, type Notice } from '../../platform-server/notifications/template.ts';
import { createKeyRing } from '../../service/keys/key-ring.ts';
import { createUrns } from '../../service/urn.ts';
import type { Language } from '../forms/form.ts';
import { type EventKind, events, renderEvent } from '../outbox/event-catalogue.ts';
import type { EventDefinition } from '../outbox/event-fields.ts';
import type { OutboxForm, OutboxRow } from '../outbox/outbox.ts';
import { createNoticeLinks } from './links.ts';
import { frenchOverride, type NotificationType, notificationType, notificationTypeId } from './notification-type.ts';

const urns = createUrns('urn:example');
const render = createNoticeRenderer();
const formId = '0198f6aa-7f5e-7c3a-9d57-3f6f0e1d2c3b';
const link = `https://forms.example.org/permit/${formId}?a=1&b=2`;

const permit: EventDefinition = {
  id: 'permit',
  name: "Baker's permit",
  formDraftUrlTemplate: 'https://forms.example.org/permit/{{id}}?a=1&b=2',
};

const form: OutboxForm = {
  status: 'Draft',
  created: new Date('2026-08-01T09:00:00.000Z'),
  createdBy: { id: 'subject', name: 'Intake' },
  lastAccessed: new Date('2026-08-05T09:00:00.000Z'),
  locked: null,
  submitted: null,
  applicant: { addressAs: 'Ana', channels: [{ channel: 'email', address: 'ana@example.org' }] },
  subscriberId: null,
};

const links = createNoticeLinks({
  keys: createKeyRing(`test:${Buffer.alloc(32, 1).toString('base64')}`),
  publicUrl: 'https://forms.example.org',
});

interface Source {
  language?: Language;
  withLinks?: boolean;
  definition?: EventDefinition | undefined;
  form?: OutboxForm | undefined;
  facts?: Partial<OutboxRow['facts']>;
  addressAs?: string;
}

const dates = { lockOn: '2026-08-23T17:00:00.000Z', deleteOn: '2026-09-04T17:00:00.000Z' };

function noticeOf(
  type: Pick<NotificationType, 'events'>,
  kind: EventKind,
  channel: 'email' | 'sms',
  source: Source = {},
): Notice {
  const { definition = 'definition' in source ? undefined : permit, facts = dates, addressAs = 'Ana' } = source;
  const { language = 'en', withLinks = false } = source;
  const known = 'form' in source ? source.form : form;
  const row = {
    sequence: '1',
    formId,
    tenantId: urns.tenant('t'),
    kind,
    facts: { definitionId: 'permit', ...(known ? {} : { language }), ...facts },
    created: new Date('2026-08-20T17:00:00.000Z'),
    attempts: 1,
    form: known && { ...known, applicant: { ...known.applicant, language } },
  };
  const event = JSON.parse(
    JSON.stringify(renderEvent({ row, definition, data: null, urns, ...(withLinks && { links }) })),
  ) as Record<string, unknown>;
  const template = type.events.find(({ name }) => name === kind)?.templates[channel];
  if (!template) throw new Error(`no template for ${kind} by ${channel}`);
  const tenant = { id: urns.tenant('t'), name: 'Blue River' };
  return render(template, { tenant, event, subscriber: { addressAs }, managementUrl: '' });
}

const override = frenchOverride(events);
const frenchType = override[notificationTypeId];
if (!frenchType) throw new Error(`frenchOverride does not return ${notificationTypeId}`);

it('docs/notices/fr.json is what npm run docs writes', async () => {
  const written = await readFile(new URL('../../../docs/notices/fr.json', import.meta.url), 'utf8');
  expect(JSON.parse(written)).toEqual(override);
  expect(written).toBe(`${JSON.stringify(override, undefined, 2)}\n`);
});

it('the request in docs/notices.md has the members of the documented French texts, which the public platform requires', async () => {
  const page = await readFile(new URL('../../../docs/notices.md', import.meta.url), 'utf8');
  const request = JSON.parse(/^\{"operation"[^`]+/m.exec(page)?.[0] ?? '{}') as { update: typeof override };
  const { description: _, ...required } = frenchType;
  const documented = request.update[notificationTypeId];
  expect(documented).toEqual({ ...required, name: expect.any(String), events: expect.any(Array) });
  expect(documented?.events).toMatchObject([{ namespace: 'form-service', name: 'form-locked' }]);
});

const languages = [
  ['English', notificationType, 'en'],
  ['French', notificationType, 'fr'],
  ['French for all applicants of a tenant', frenchType, 'en'],
] as const;

describe.each(languages)('notices in %s', (title, type, language) => {
  const isFrench = title.startsWith('French');
  const notice = (...[kind, channel, source]: [EventKind, 'email' | 'sms', Source?]) =>
    noticeOf(type, kind, channel, { language, ...source });
  const kinds = type.events.map(({ name }) => name as EventKind);

  it('exist by email and sms for each event that has a notice in the catalogue', () => {
    expect([...kinds].sort()).toEqual(
      Object.entries(events)
        .filter(([, entry]) => 'notice' in entry)
        .map(([name]) => name)
        .sort(),
    );
    for (const { templates } of type.events) expect(Object.keys(templates).sort()).toEqual(['email', 'sms']);
  });

  describe.each(kinds)('%s', (kind) => {
    const sources: [string, Source][] = [
      ['everything known', {}],
      ['no definition', { definition: undefined }],
      ['no draft link', { definition: { id: 'permit', name: 'Permit' } }],
      ['no dates', { facts: {} }],
      ['the form gone', { form: undefined }],
      ['no name', { addressAs: '' }],
    ];

    it.each(sources)('reads as expected with %s', (_, source) => {
      for (const channel of ['email', 'sms'] as const) {
        const { subject, text, html } = notice(kind, channel, source);
        for (const part of [subject, text, html]) {
          expect(part).not.toMatch(/undefined|null|\[object|\{\{|\}\}/);
          expect(part.trim()).not.toBe('');
        }
        expect(text).not.toMatch(/ {2}| \.| ,|\.\./);
        expect(subject).not.toMatch(/[<>\n]/);
      }
    });

    it('escapes markup in names in HTML, and keeps names in plain text', () => {
      const definition = { ...permit, name: '<script>alert("x")</script>' };
      const email = notice(kind, 'email', { definition, addressAs: '<img src=x onerror=alert(1)>' });
      expect(email.html).not.toMatch(/<script|<img/);
      expect(email.html).toContain('&lt;img');
      expect(notice(kind, 'email').subject).toContain("Baker's permit");
      expect(notice(kind, 'sms').text).toContain("Baker's permit");
    });

    it('fits into three parts of a text message', () => {
      expect(notice(kind, 'sms').text.length).toBeLessThanOrEqual(3 * 153);
    });
  });

  it('say when the draft will be locked and deleted', () => {
    const day = isFrench ? /4 septembre 2026/ : /September 4, 2026/;
    for (const kind of ['form-expiring', 'form-locked'] as const) expect(notice(kind, 'email').text).toMatch(day);
    expect(notice('form-locked', 'sms').text).toMatch(day);
    const lock = isFrench ? /23 août 2026/ : /August 23, 2026/;
    expect(notice('form-expiring', 'sms').text).toMatch(lock);
  });

  it('name the earliest day of a deadline that is on different days in different time zones', () => {
    const facts = { lockOn: '2026-08-24T11:59:00.000Z', deleteOn: '2026-09-05T02:00:00.000Z' };
    const lock = isFrench ? /23 août 2026/ : /August 23, 2026/;
    const day = isFrench ? /4 septembre 2026/ : /September 4, 2026/;
    for (const channel of ['email', 'sms'] as const) {
      expect(notice('form-expiring', channel, { facts }).text).toMatch(lock);
      expect(notice('form-locked', channel, { facts }).text).toMatch(day);
    }
    expect(notice('form-expiring', 'email', { facts }).text).toMatch(day);
  });

  it('contain a link to the form only while it is a draft, because applicants cannot open it otherwise', () => {
    for (const kind of ['form-created', 'form-expiring', 'form-unlocked', 'form-to-draft'] as const) {
      expect(notice(kind, 'email').text).toContain(link);
      expect(notice(kind, 'email').html).toContain('href="https://forms.example.org/permit/');
      expect(notice(kind, 'sms').text).toContain(link);
    }
    for (const kind of ['form-locked', 'form-submitted', 'form-deleted'] as const)
      for (const channel of ['email', 'sms'] as const) {
        const { text, html } = notice(kind, channel);
        expect(`${text}${html}`, `${kind} by ${channel}`).not.toContain('https://forms.example.org/');
      }
  });

  it('name the tenant, the form and their language, and have a plain text part', () => {
    for (const kind of type.events.map((event) => event.name as EventKind)) {
      const { subject, text, html } = notice(kind, 'email');
      for (const part of [text, html]) expect(part).toContain('Blue River');
      for (const part of [subject, text]) expect(part).toContain("Baker's permit");
      expect(html).toContain(`<div lang="${isFrench ? 'fr' : 'en'}">`);
      expect(text).not.toMatch(/<[a-z/]/);
    }
  });

  it('offer to keep or delete the draft only in the warning, and only where the pages are enabled', () => {
    const warning = notice('form-expiring', 'email', { withLinks: true });
    for (const purpose of ['keep', 'delete'])
      expect(warning.text).toContain(`https://forms.example.org/apply/forms/${formId}/${purpose}?link=`);
    expect(warning.html).toMatch(
      isFrench ? /Supprimer mon brouillon et mes données<\/a>/ : /Delete my draft and my data<\/a>/,
    );
    for (const kind of type.events.map((event) => event.name as EventKind)) {
      expect(notice(kind, 'email').html).not.toContain('/apply/forms/');
      if (kind !== 'form-expiring') expect(notice(kind, 'email', { withLinks: true }).html).not.toContain('?link=');
    }
  });

  it('call a deleted draft a draft', () => {
    const { text } = notice('form-deleted', 'email', { form: undefined, facts: { wasDraft: true } });
    expect(text).toMatch(isFrench ? /Votre brouillon/ : /permit draft is deleted/);
    expect(notice('form-deleted', 'email', { form: undefined }).text).not.toMatch(/brouillon|draft/);
  });
});
