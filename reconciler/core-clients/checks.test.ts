// Tests the conditions Shadows and TargetsResolved, especially while tenants or the directory cannot be read.
import { describe, expect, it } from 'vitest';
import type { Tenant } from '../../src/service/auth/identity.ts';
import { mostShadowedTenants } from './checks.ts';
import type { Verdict } from './plan.ts';
import { type Condition, type CoreClientStatus, conditionOf } from './resource.ts';
import { type Checks, cutToBytes, eventsOf, nextStatus } from './status.ts';
import type { UpstreamState } from './upstreams.ts';

const now = new Date('2026-11-21T12:00:00Z');
const tenant = (name: string): Tenant => ({ id: `urn:tenant:${name}`, name, realm: name });
const [a, b] = [tenant('A'), tenant('B')];

const verdictOf = (status: Partial<CoreClientStatus> = {}, generation = 1): Verdict => ({
  resource: { name: 'c', uid: 'u', generation, created: '', resourceVersion: '1', spec: {}, status },
  clientId: 'c',
  entry: {
    ...{ id: 'c', name: 'c', redirectUris: [], keycloakLogout: false },
    targets: ['forms', 'maps'].map((id) => ({ id, upstream: `urn:${id}` })),
  },
  change: 'none',
  hash: 'hash',
});
const rejected = (status: Partial<CoreClientStatus>): Verdict => ({
  resource: verdictOf(status).resource,
  clientId: 'c',
  rejection: { reason: 'Invalid', message: 'spec: is invalid' },
});

function checks(
  found: { affected?: Tenant[]; unread?: Tenant[] } | 'no tenants' = {},
  maps: UpstreamState = 'resolved',
): Checks {
  const upstreams = new Map<string, UpstreamState>([
    ['urn:forms', 'resolved'],
    ['urn:maps', maps],
  ]);
  if (found === 'no tenants') return { shadows: undefined, upstreams };
  const { affected = [], unread = [] } = found;
  return { shadows: { affected: new Map([['c', affected]]), unread }, upstreams };
}
const next = (given: Checks, verdict = verdictOf()) =>
  nextStatus(verdict, verdict.rejection ? undefined : { kind: 'synced', revision: 1 }, given, now);
const say = (status: CoreClientStatus, type: Condition['type']) => {
  const condition = conditionOf(status, type);
  return `${condition?.status} ${condition?.reason}`;
};
const told = (before: CoreClientStatus, after: CoreClientStatus) =>
  eventsOf(verdictOf(before), after).map(({ type, reason }) => `${type} ${reason}`);

const clean = next(checks());
const shadowing = next(checks({ affected: [a] }));

describe('Shadows', () => {
  it('stays while an affected tenant cannot be read, without an Event', () => {
    const later = next(checks({ unread: [a, b] }), verdictOf(shadowing));
    expect(conditionOf(later, 'Shadows')).toEqual(conditionOf(shadowing, 'Shadows'));
    expect(later.shadowedTenants).toEqual([a.id]);
    expect(told(shadowing, later)).toEqual([]);
  });

  it('stays while the tenants cannot be listed, also after a change of the resource', () => {
    const later = next(checks('no tenants'), verdictOf(shadowing, 2));
    expect(say(later, 'Shadows')).toBe('True TenantsAffected');
    expect(later.shadowedTenants).toEqual([a.id]);
    expect(told(shadowing, later)).toEqual([]);
    expect(say(next(checks('no tenants'), verdictOf(clean)), 'Shadows')).toBe('False NoTenantsAffected');
  });

  it('is Unknown only until all tenants were read once', () => {
    const unknown = next(checks({ unread: [a] }));
    expect(say(unknown, 'Shadows')).toBe('Unknown TenantsUnread');
    expect(say(next(checks('no tenants')), 'Shadows')).toBe('Unknown TenantsUnread');
    expect(say(next(checks(), verdictOf(unknown)), 'Shadows')).toBe('False NoTenantsAffected');
    expect(say(next(checks({ unread: [a] }), verdictOf(clean)), 'Shadows')).toBe('False NoTenantsAffected');
    expect(told(unknown, clean)).toEqual([]);
  });

  it('is True for a tenant that was found although others could not be read', () => {
    expect(say(next(checks({ affected: [b], unread: [a] })), 'Shadows')).toBe('True TenantsAffected');
  });

  it('lists a bounded number of tenants, without control characters', () => {
    const many = Array.from({ length: 1_000 }, (_, n) => tenant(`${n}\u001b[31m\u202e${'€'.repeat(500)}`));
    const status = next(checks({ affected: many }));
    const { message = '' } = conditionOf(status, 'Shadows') ?? {};
    expect(message).toMatch(/ and 990 more\.$/);
    expect(message).not.toMatch(/\p{C}/u);
    expect(message.length).toBeLessThan(1_000);
    expect(status.shadowedTenants).toHaveLength(mostShadowedTenants);
    const [event] = eventsOf(verdictOf(clean), status);
    expect(Buffer.byteLength(event?.note ?? '')).toBeLessThanOrEqual(1_024);
  });

  it('does not affect Ready, and concerns an invalid resource only while its earlier version is in effect', () => {
    expect(say(shadowing, 'Ready')).toBe('True Ready');
    expect(say(next(checks({ affected: [a] }), rejected({})), 'Shadows')).toBe('Unknown NotAccepted');
    expect(say(next(checks({ affected: [a] }), rejected({ syncedHash: 'hash' })), 'Shadows')).toBe(
      'True TenantsAffected',
    );
  });
});

describe('TargetsResolved', () => {
  const absent = next(checks({}, 'absent'));

  it('is False for an unknown upstream, and Ready with it', () => {
    expect(say(absent, 'TargetsResolved')).toBe('False UpstreamUnknown');
    expect(say(absent, 'Ready')).toBe('False UpstreamUnknown');
    expect(told(clean, absent)).toEqual(['Warning UpstreamUnknown']);
    expect(told(absent, clean)).toEqual(['Normal Resolved']);
  });

  it('stays while the directory cannot be read, without an Event', () => {
    expect(say(next(checks({}, 'unknown'), verdictOf(clean)), 'TargetsResolved')).toBe('True Resolved');
    const later = next(checks({}, 'unknown'), verdictOf(absent));
    expect(say(later, 'TargetsResolved')).toBe('False UpstreamUnknown');
    expect(told(absent, later)).toEqual([]);
  });

  it('is Unknown for targets that were never checked, which does not affect Ready', () => {
    for (const before of [verdictOf(), verdictOf(absent, 2)]) {
      const status = next(checks({}, 'unknown'), before);
      expect(say(status, 'TargetsResolved')).toBe('Unknown DirectoryUnread');
      expect(say(status, 'Ready')).toBe('True Ready');
    }
  });
});

it('a note is cut between two characters', () => {
  expect(cutToBytes('a€€', 4)).toBe('a€');
  expect(cutToBytes('a€€', 5)).toBe('a€');
  expect(cutToBytes('a😀', 4)).toBe('a');
  expect(cutToBytes('short', 1_024)).toBe('short');
});
