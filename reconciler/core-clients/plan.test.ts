// Tests which resource gets which client, and what a plan writes to the configuration. A property test checks plans for
// arbitrary resources and configurations.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maintainedClients } from '../../src/service/clients/client-rules.ts';
import { createUrns } from '../../src/service/urn.ts';
import { createCoreClientParser, hashEntry } from './core-client.ts';
import type { CoreDocument } from './document.ts';
import { type PlanOptions, planSync } from './plan.ts';
import type { CoreClientResource } from './resource.ts';

const now = new Date('2026-11-21T12:00:00Z');
const rules = { urnPrefix: 'urn:example', redirectUriRules: { allowInsecure: false, allowWildcardPaths: false } };
const options: PlanOptions = { ...rules, maintained: [], allowPrune: false, now };

function resource(name: string, fields: Partial<CoreClientResource> = {}): CoreClientResource {
  return {
    name,
    uid: name,
    generation: 1,
    created: '2026-11-01T00:00:00Z',
    resourceVersion: '1',
    spec: {},
    status: {},
    ...fields,
  };
}

const entryOf = (name: string) => createCoreClientParser(rules)(resource(name)).entry;

function documentOf(clients: Record<string, unknown>, owned: string[] = [], atTop: string[] = []): CoreDocument {
  return {
    revision: 3,
    clients: new Map(Object.entries(clients)),
    atTop: new Set(atTop),
    owned: new Map(owned.map((id) => [id, '2026-11-01T00:00:00.000Z'])),
  };
}

const changes = (resources: CoreClientResource[], document: CoreDocument, given = options) =>
  Object.fromEntries(
    planSync(resources, document, given).verdicts.map(({ resource: { name }, rejection, change }) => [
      name,
      rejection?.reason ?? change,
    ]),
  );

describe('a client', () => {
  it('is created, updated, repaired or kept', () => {
    const status = (hash: string) => ({ observedGeneration: 1, syncedHash: hash });
    const document = documentOf(
      { same: entryOf('same'), changed: { id: 'changed', name: 'earlier' }, edited: { name: 'by hand' } },
      ['same', 'changed', 'edited', 'removed'],
    );
    const resources = [
      resource('new'),
      resource('same'),
      resource('changed', { status: status(hashEntry({ id: 'changed', name: 'earlier' })) }),
      resource('edited', { status: status(hashEntry(entryOf('edited'))) }),
      resource('removed', { status: status(hashEntry(entryOf('removed'))) }),
    ];
    expect(changes(resources, document)).toEqual({
      new: 'created',
      same: 'none',
      changed: 'updated',
      edited: 'repaired',
      removed: 'repaired',
    });
  });

  it('that a later edit of its resource changes is not a repair, if the status does not show the earlier edit yet', () => {
    // The write of the second generation succeeded. Its status was refused, because the resource had changed again.
    const status = { observedGeneration: 1, syncedHash: hashEntry({ id: 'a', name: 'first' }) };
    const third = resource('a', { generation: 3, status });
    expect(changes([third], documentOf({ a: { id: 'a', name: 'second' } }, ['a']))).toEqual({ a: 'updated' });
    expect(changes([third], documentOf({}, ['a']))).toEqual({ a: 'created' });
  });

  it('that was written before a crash and is not in a status yet is not a repair', () => {
    expect(changes([resource('a')], documentOf({ a: entryOf('a') }, ['a']))).toEqual({ a: 'none' });
    expect(changes([resource('a')], documentOf({}, ['a']))).toEqual({ a: 'created' });
  });

  it('belongs to the older of two resources, or to the first by name, even while that is invalid', () => {
    const late = { created: '2026-11-02T00:00:00Z', spec: { clientId: 'x' } };
    const early = { created: '2026-11-01T00:00:00Z', spec: { clientId: 'x' } };
    expect(changes([resource('a', late), resource('b', early)], documentOf({}))).toEqual({
      a: 'Duplicate',
      b: 'created',
    });
    expect(changes([resource('b', early), resource('a', early)], documentOf({}))).toEqual({
      a: 'created',
      b: 'Duplicate',
    });
    const invalid = { ...early, spec: { clientId: 'x', keycloakLogout: 1 } };
    expect(changes([resource('a', late), resource('b', invalid)], documentOf({}))).toEqual({
      a: 'Duplicate',
      b: 'Invalid',
    });
  });

  it('of others is not changed, wherever it is in the document', () => {
    const plan = planSync([resource('a'), resource('b')], documentOf({ a: {} }, [], ['b']), options);
    expect(plan.verdicts.map(({ rejection }) => rejection?.reason)).toEqual(['NotOwned', 'NotOwned']);
    expect([...plan.owned]).toEqual([]);
  });

  it('that is owned stays owned if others add its id at the top level', () => {
    expect(changes([resource('a')], documentOf({ a: entryOf('a') }, ['a'], ['a']))).toEqual({ a: 'none' });
  });
});

describe.each(['builder-preview', 'formgate-console'])('%s', (id) => {
  const urls = { BUILDER_APP_URL: 'https://builder.example.org', CONSOLE_URL: 'https://forms.example.org' };
  const maintained = maintainedClients(urls, createUrns('urn:example')).filter((client) => client.id === id);

  it('is written if it differs, and no resource can have it', () => {
    const plan = planSync([resource(id)], documentOf({}), { ...options, maintained });
    expect(plan.verdicts[0]?.rejection?.reason).toBe('Reserved');
    expect(plan.maintained).toEqual([{ before: undefined, after: maintained[0] }]);
    const kept = planSync([], documentOf({ [id]: maintained[0] }), { ...options, maintained });
    expect(kept.maintained).toEqual([]);
  });

  it('that belonged to a resource is disowned and not removed', () => {
    const plan = planSync([], documentOf({ [id]: {} }, [id]), {
      ...options,
      maintained,
      allowPrune: true,
    });
    expect(plan.prune).toEqual([]);
    expect([...plan.owned]).toEqual([]);
  });
});

describe('the removal of clients', () => {
  const owned = ['a', 'b', 'c', 'd'];
  const document = documentOf(Object.fromEntries(owned.map((id) => [id, {}])), owned);
  const removed = (names: string[], allowPrune = false) => {
    const { prune, held } = planSync(
      names.map((name) => resource(name)),
      document,
      { ...options, allowPrune },
    );
    return { prune, held };
  };

  it.each([
    { left: ['a', 'b', 'c', 'd'], prune: [], held: [] },
    { left: ['a', 'b', 'c'], prune: ['d'], held: [] },
    { left: ['a', 'b'], prune: ['c', 'd'], held: [] },
    { left: ['a'], prune: [], held: ['b', 'c', 'd'] },
    { left: [], prune: [], held: ['a', 'b', 'c', 'd'] },
  ])('is held back if it concerns more than half of them: with $left of four left', ({ left, prune, held }) => {
    expect(removed(left)).toEqual({ prune, held });
    expect(removed(left, true)).toEqual({ prune: [...prune, ...held], held: [] });
  });

  it('does not concern clients of an invalid or refused resource', () => {
    const resources = [
      resource('a', { spec: { keycloakLogout: 1 } }),
      ...['b', 'c', 'd'].map((name) => resource(name)),
    ];
    expect(planSync(resources, document, { ...options, allowPrune: true }).prune).toEqual([]);
  });

  it('concerns only owned clients, whatever the configuration and the resources contain', () => {
    const ids = fc.uniqueArray(fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e', 'builder-preview'));
    fc.assert(
      fc.property(ids, ids, ids, ids, fc.boolean(), (standing, ours, top, named, allowPrune) => {
        const given = documentOf(Object.fromEntries(standing.map((id) => [id, {}])), ours, top);
        const plan = planSync(
          named.map((name) => resource(name)),
          given,
          { ...options, allowPrune },
        );
        for (const id of [...plan.prune, ...plan.held]) {
          expect(ours).toContain(id);
          expect(named).not.toContain(id);
        }
        for (const { entry, change } of plan.verdicts)
          if (entry && change !== 'none') expect(!standing.includes(entry.id) || ours.includes(entry.id)).toBe(true);
        for (const id of plan.owned.keys()) expect([...ours, ...named]).toContain(id);
      }),
    );
  });
});
