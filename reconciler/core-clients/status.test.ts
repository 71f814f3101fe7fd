// Tests the status of a resource, and the Events for its transitions.
import { describe, expect, it } from 'vitest';
import type { ClientEntry } from '../../src/service/clients/client-rules.ts';
import type { Change, Verdict } from './plan.ts';
import { type CoreClientResource, parsePage } from './resource.ts';
import { type Checks, eventsOf, isSameStatus, nextStatus, type SyncResult } from './status.ts';

const first = new Date('2026-11-21T12:00:00.500Z');
const later = new Date('2026-11-21T13:00:00.500Z');
const entry: ClientEntry = { id: 'a', name: 'a', redirectUris: [], targets: [], keycloakLogout: false };
const synced: SyncResult = { kind: 'synced', revision: 4 };

function resource(status: CoreClientResource['status'] = {}, generation = 1): CoreClientResource {
  return { name: 'a', uid: 'u', generation, created: '', resourceVersion: '1', spec: {}, status };
}
const accepted = (status: CoreClientResource['status'] = {}, change: Change = 'created', generation = 1): Verdict => ({
  resource: resource(status, generation),
  clientId: 'a',
  entry,
  change,
  hash: 'hash',
});
const refused = (status: CoreClientResource['status'] = {}): Verdict => ({
  resource: resource(status),
  clientId: 'a',
  rejection: { reason: 'Duplicate', message: 'The older resource b has the same client id.' },
});
const checked: Checks = { shadows: { affected: new Map(), unread: [] }, upstreams: new Map() };
const told = (verdict: Verdict, result?: SyncResult) =>
  eventsOf(verdict, nextStatus(verdict, result, checked, later)).map(({ type, reason }) => `${type} ${reason}`);

const ready = nextStatus(accepted(), synced, checked, first);
const notReady = nextStatus(refused(), undefined, checked, first);
const failed = nextStatus(accepted(), { kind: 'failed' }, checked, first);

describe('a status', () => {
  it('changes the time of a condition only if its value changes', () => {
    const next = nextStatus(accepted(ready, 'updated', 2), { kind: 'failed' }, checked, later);
    expect(next.conditions).toMatchObject([
      { type: 'Accepted', status: 'True', lastTransitionTime: '2026-11-21T12:00:00Z', observedGeneration: 2 },
      { type: 'Synced', status: 'False', lastTransitionTime: '2026-11-21T13:00:00Z', observedGeneration: 2 },
      { type: 'TargetsResolved', status: 'True', lastTransitionTime: '2026-11-21T12:00:00Z', observedGeneration: 2 },
      { type: 'Shadows', status: 'False', lastTransitionTime: '2026-11-21T12:00:00Z', observedGeneration: 2 },
      { type: 'Ready', status: 'False', lastTransitionTime: '2026-11-21T13:00:00Z', observedGeneration: 2 },
    ]);
  });

  it('keeps revision and hash of the last write while the client cannot be written', () => {
    expect(nextStatus(accepted(ready), { kind: 'failed' }, checked, later)).toMatchObject({
      revision: 4,
      syncedHash: 'hash',
    });
  });

  it('has neither revision nor hash if the client belongs to others', () => {
    expect(nextStatus(refused(ready), undefined, checked, later)).not.toHaveProperty('syncedHash');
    expect(nextStatus(refused(ready), undefined, checked, later)).not.toHaveProperty('revision');
  });

  it('equals the previous one only if nothing changed', () => {
    expect(
      isSameStatus(ready, nextStatus(accepted(ready, 'none'), { kind: 'synced', revision: undefined }, checked, later)),
    ).toBe(true);
    expect(isSameStatus(ready, nextStatus(accepted(ready, 'none', 2), synced, checked, later))).toBe(false);
    expect(isSameStatus({ ...ready, revision: 5 }, ready)).toBe(false);
    expect(isSameStatus({ ...ready, conditions: ready.conditions.slice(1) }, ready)).toBe(false);
    expect(isSameStatus({}, ready)).toBe(false);
    expect(isSameStatus(failed, ready)).toBe(false);
  });

  it('lists a tenant that replaces another, even if the message does not name it', () => {
    const others = Array.from({ length: 10 }, (_, nth) => `a${nth}`);
    const statusWith = (last: string, present?: CoreClientResource['status']) => {
      const tenants = [...others, last].map((id) => ({ id, name: id, realm: id }));
      const shadows = { affected: new Map([['a', tenants]]), unread: [] };
      return nextStatus(accepted(present, 'none'), synced, { ...checked, shadows }, first);
    };
    const before = statusWith('b');
    const after = statusWith('c', before);
    expect(after.shadowedTenants).toContain('c');
    expect(isSameStatus(before, after)).toBe(false);
    expect(isSameStatus(before, statusWith('b', before))).toBe(true);
    // A cluster with an older CRD drops the field `shadowedTenants`. If the field were compared, every run would write
    // the status.
    const { shadowedTenants: _, ...dropped } = before;
    expect(isSameStatus(dropped, before)).toBe(true);
  });
});

describe('Events', () => {
  it.each<{ title: string; verdict: Verdict; result?: SyncResult; events: string[] }>([
    { title: 'a first sync', verdict: accepted(), result: synced, events: ['Normal Synced'] },
    { title: 'nothing new', verdict: accepted(ready, 'none'), result: synced, events: [] },
    { title: 'a change', verdict: accepted(ready, 'updated', 2), result: synced, events: [] },
    { title: 'a repair', verdict: accepted(ready, 'repaired'), result: synced, events: ['Warning Repaired'] },
    {
      title: 'a repair that fails',
      verdict: accepted(ready, 'repaired'),
      result: { kind: 'failed' },
      events: ['Warning WriteFailed'],
    },
    { title: 'a rejection', verdict: refused(), events: ['Warning Duplicate'] },
    { title: 'a rejection again', verdict: refused(notReady), events: [] },
    { title: 'a rejection of what was ready', verdict: refused(ready), events: ['Warning Duplicate'] },
    {
      title: 'an acceptance after it',
      verdict: accepted(notReady),
      result: synced,
      events: ['Normal Accepted', 'Normal Synced'],
    },
    { title: 'a failure', verdict: accepted(), result: { kind: 'failed' }, events: ['Warning WriteFailed'] },
    { title: 'a failure again', verdict: accepted(failed), result: { kind: 'failed' }, events: [] },
    { title: 'another failure', verdict: accepted(failed), result: { kind: 'refused' }, events: ['Warning Refused'] },
    { title: 'success after it', verdict: accepted(failed), result: synced, events: ['Normal Synced'] },
  ])('of $title: $events', ({ verdict, result, events }) => {
    expect(told(verdict, result)).toEqual(events);
  });
});

describe('a response of the API server', () => {
  const metadata = {
    name: 'a',
    uid: 'u',
    generation: 1,
    creationTimestamp: '2026-11-21T12:00:00Z',
    resourceVersion: '1',
  };

  it('is read tolerantly: an invalid status counts as none', () => {
    const items = [
      { metadata, spec: {}, status: { conditions: [{ type: 'Other' }, 1], revision: 'x' } },
      { metadata, status: 7 },
    ];
    const page = parsePage({ metadata: { continue: '' }, items });
    expect(page?.next).toBeUndefined();
    expect(page?.resources.map(({ status }) => status.conditions)).toEqual([[], []]);
  });

  it('is read without resources that are being deleted', () => {
    const going = { ...metadata, deletionTimestamp: '2026-11-21T12:00:00Z' };
    expect(parsePage({ metadata: {}, items: [{ metadata: going, spec: {} }] })?.resources).toEqual([]);
  });

  it('without items is not a list', () => {
    expect(parsePage({ metadata: {} })).toBeUndefined();
    expect(parsePage('text')).toBeUndefined();
  });
});
