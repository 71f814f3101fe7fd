import { describe, expect, it } from 'vitest';
import { createValidate } from '../configuration/validation.ts';
import { notificationTypes, notificationTypesSchema, senderOf, typesOfEvent } from './notification-type.ts';

const email = { subject: 'S', body: 'B' };
const type = (id: string, changes: Record<string, unknown> = {}) => ({
  id,
  name: id,
  description: 'x',
  publicSubscribe: false,
  subscriberRoles: [],
  channels: ['email', 'sms'],
  events: [{ namespace: 'form-service', name: 'form-locked', templates: { email, sms: { body: 'core' } } }],
  ...changes,
});

describe('the types of a tenant', () => {
  it("are core's and its own; of core's, it overrides only the templates, channel by channel", () => {
    const own = type('a', {
      name: 'Other',
      channels: ['pigeon'],
      events: [
        { namespace: 'form-service', name: 'form-locked', templates: { email: { subject: 'Own', body: 'Own' } } },
        { namespace: 'form-service', name: 'form-created', templates: { email } },
      ],
    });
    const types = notificationTypes({ core: { a: type('a') }, tenant: { a: own, b: type('b') } });
    expect([...types.keys()]).toEqual(['a', 'b']);
    expect(types.get('a')).toMatchObject({ name: 'a', channels: ['email', 'sms'] });
    expect(types.get('a')?.events).toHaveLength(1);
    expect(types.get('a')?.events[0]?.templates).toMatchObject({ email: { subject: 'Own' }, sms: { body: 'core' } });
  });

  it('have templates for 10 channels at most, so that a document from before this limit is read at once', () => {
    const templates = Object.fromEntries(Array.from({ length: 150_000 }, (_, index) => [`c${index}`, {}]));
    const own = type('a', { events: [{ namespace: 'form-service', name: 'form-locked', templates }] });
    const began = process.cpuUsage();
    const types = notificationTypes({ core: undefined, tenant: { a: own } });
    const { user, system } = process.cpuUsage(began);
    expect(Object.keys(types.get('a')?.events[0]?.templates ?? {})).toHaveLength(10);
    expect((user + system) / 1_000).toBeLessThan(400);
  });

  it('have 100 subscriber roles and 10 channels at most, also in a document from before these limits', () => {
    const names = (count: number) => Array.from({ length: count }, (_, nth) => `n${nth}`);
    const own = type('a', { subscriberRoles: names(10_000), channels: names(11) });
    const read = notificationTypes({ core: undefined, tenant: { a: own } }).get('a');
    expect(read).toMatchObject({ subscriberRoles: names(100), channels: names(10) });
    const validate = createValidate();
    const isValid = (changes: object) => validate(notificationTypesSchema, { a: type('a', { ...changes }) }).valid;
    expect(isValid({ subscriberRoles: names(100), channels: names(10) })).toBe(true);
    expect(isValid({ subscriberRoles: names(101) })).toBe(false);
    expect(isValid({ channels: names(11) })).toBe(false);
    expect(isValid({ subscriberRoles: ['x'.repeat(201)] })).toBe(false);
  });

  it('keep the valid templates of a document that was stored with an invalid one', () => {
    const templates = { email: { subject: 'Own', body: 'Own' }, sms: { body: null }, letter: 'x' };
    const own = type('a', { events: [{ namespace: 'form-service', name: 'form-locked', templates }] });
    const read = notificationTypes({ core: { a: type('a') }, tenant: { a: own, b: { ...own, id: 'b' } } });
    const ownEmail = { subject: 'Own', body: 'Own' };
    expect(read.get('a')?.events[0]?.templates).toEqual({ email: ownEmail, sms: { subject: '', body: 'core' } });
    expect(read.get('b')?.events[0]?.templates).toEqual({ email: ownEmail });
  });

  it('do not include contact, email and invalid entries', () => {
    const core = {
      contact: type('contact'),
      emailSettings: type('emailSettings'),
      bad: { name: 5 },
      good: type('good'),
      text: 'x',
    };
    expect([...notificationTypes({ core, tenant: undefined }).keys()]).toEqual(['good']);
    expect(notificationTypes({ core: undefined, tenant: ['x'] }).size).toBe(0);
  });

  it('that cover an event contain its namespace and name; no type covers events of the notification service', () => {
    const own = [{ namespace: 'notification-service', name: 'sent', templates: { email } }];
    const types = notificationTypes({ core: { a: type('a'), b: type('b', { events: own }) }, tenant: undefined });
    expect(typesOfEvent(types, 'form-service', 'form-locked').map(({ id }) => id)).toEqual(['a']);
    expect(typesOfEvent(types, 'form-service', 'form-created')).toEqual([]);
    expect(typesOfEvent(types, 'elsewhere', 'form-locked')).toEqual([]);
    expect(typesOfEvent(types, 'notification-service', 'sent')).toEqual([]);
  });
});

describe('configuration', () => {
  const validate = createValidate();
  const isValid = (document: unknown) => validate(notificationTypesSchema, document).valid;

  it('may have types, contact and email, and no ids that start with email or contact', () => {
    expect(isValid({ a: type('a'), contact: {}, email: { fromEmail: 'x@example.org' } })).toBe(true);
    expect(isValid({ a: type('email-x') })).toBe(false);
    expect(isValid({ a: type('contact') })).toBe(false);
    expect(isValid({ a: {} })).toBe(false);
  });

  it.each([
    ['body', null],
    ['subject', 5],
    ['title', {}],
    ['subtitle', []],
  ])('with a template whose %s is %j is refused, and the error names the place', (part, value) => {
    const templates = { email: { ...email, title: null, [part]: value } };
    const document = { a: type('a', { events: [{ namespace: 'form-service', name: 'form-locked', templates }] }) };
    const pointer = `/a/events/0/templates/email/${part}`;
    expect(validate(notificationTypesSchema, document)).toMatchObject({ valid: false, pointer });
  });

  it("names the tenant's sender", () => {
    expect(senderOf({ email: { fromEmail: 'town@example.org' } })).toBe('town@example.org');
    for (const document of [undefined, {}, { email: null }, { email: { fromEmail: 'x\r\ny' } }])
      expect(senderOf(document)).toBeUndefined();
  });
});
