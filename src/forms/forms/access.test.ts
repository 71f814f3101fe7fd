// Tests how a request gets access to a form: which tenants' forms are found, for how long a deleted form gets 410, and
// which saves are refused before their body is read. Forms and configurations are kept in memory.
import { describe, expect, it } from 'vitest';
import { createExchange, type ExchangeOptions, refusal } from '../../../test/support/express-exchange.ts';
import type { Lookup } from '../../platform/configuration.ts';
import type { Caller, Tenant } from '../../service/auth/identity.ts';
import { createDefinitionSource } from '../definitions/source.ts';
import { codeOf, createFormAccess, formRequestOf, keepsChanging, mayUpdateData, revisionsOf, stale } from './access.ts';
import type { Form, Tombstone } from './form.ts';
import type { FormKey } from './store.ts';

const day = 86_400_000;
const issuer = 'https://access.example.org/auth/realms/demo';
const demo: Tenant = { id: 'urn:tenant:demo', name: 'Demo', realm: 'demo' };
const caller = (subject: string, ...roles: string[]): Caller => ({
  ...{ subject, name: subject, issuer, realm: 'demo', clientId: 'app', isCore: false, tenant: demo },
  roles: new Set(roles),
});
const formId = '0198b8a0-0000-7000-8000-00000000000a';
const form: Form = {
  ...{ id: formId, tenantId: demo.id, definitionId: 'permit', status: 'Draft' },
  ...{
    created: new Date(0),
    createdBy: { id: 'carla', name: 'Carla' },
    issuer,
    anonymousApplicant: false,
    forAnother: false,
  },
  ...{ applicant: { channels: [] }, subscriberId: null, lastAccessed: new Date(0), locked: null, submitted: null },
  ...{ held: false, holdReason: null, heldBy: null, revision: '1' },
};
const now = new Date('2026-03-20T10:00:00.000Z');

interface World {
  form?: Form;
  deleted?: { tombstone: Tombstone; at: Date };
  /** The configured definitions of the tenant. */
  definitions?: Record<string, object>;
}

/**
 * Creates the form access of a service that has at most one form. `reads` collects the options of each lookup of a
 * definition.
 */
function createWorld({ form, deleted, definitions = { permit: { applicantRoles: ['visitor'] } } }: World) {
  const reads: (Lookup | undefined)[] = [];
  const isMine = ({ tenantId, formId: id }: FormKey) => tenantId === demo.id && id === formId;
  const access = createFormAccess({
    forms: {
      find: async (key) => (isMine(key) ? form : undefined),
      findTombstone: async (key, since) =>
        deleted && isMine(key) && deleted.at >= since ? deleted.tombstone : undefined,
    },
    definitions: createDefinitionSource({
      async activeOrLatest(namespace, _name, { tenantId }, read) {
        reads.push(read);
        return namespace === 'platform' && tenantId === demo.id
          ? { revision: 1, configuration: definitions }
          : undefined;
      },
    }),
    clock: () => now,
  });
  return { access, reads };
}

const request = (who: Caller, tenantId = demo.id) => ({ caller: who, tenantId, formId });
const creator = caller('carla', 'visitor');

describe('a form', () => {
  it('is found in the caller’s tenant, with the role in which the caller performs the action', async () => {
    const { access, reads } = createWorld({ form });
    expect(await access.authorize('update-data', request(creator))).toEqual({ form, role: 'applicant' });
    // The definition names the applicants' roles, so a cached definition must be recent.
    expect(reads).toEqual([{ permission: true }]);
  });

  it('of another tenant does not exist for the caller', async () => {
    const { access } = createWorld({ form });
    await expect(access.authorize('read', request(creator, 'urn:tenant:other'))).rejects.toMatchObject({
      slug: 'not-found',
    });
  });

  it('is forbidden without a role of its definition, also if the definition was removed', async () => {
    for (const world of [createWorld({ form }), createWorld({ form, definitions: {} })])
      await expect(world.access.authorize('update-data', request(caller('otto')))).rejects.toMatchObject({
        slug: 'forbidden',
      });
  });

  it('is read without its definition by callers whose own role is enough', async () => {
    const { access, reads } = createWorld({ form });
    expect(await access.authorize('read', request(caller('ada', 'form-admin')))).toEqual({ form, role: 'admin' });
    expect(reads).toEqual([]);
  });
});

describe('a deleted form', () => {
  const tombstone: Tombstone = { definitionId: 'permit', anonymousApplicant: false };
  const attempt = (age: number, who = creator) => {
    const { access } = createWorld({ deleted: { tombstone, at: new Date(now.getTime() - age) } });
    return access.authorize('update-data', request(who)).catch(({ slug }) => slug);
  };

  it('is gone for thirty days, and then unknown', async () => {
    expect(await attempt(30 * day)).toBe('gone');
    expect(await attempt(30 * day + 1)).toBe('not-found');
  });

  it('is gone only for callers who could have used it', async () => {
    expect(await attempt(0)).toBe('gone');
    expect(await attempt(0, caller('otto'))).toBe('forbidden');
  });
});

describe('a definition', () => {
  it('that a request to create a form names is recent, and the caller may have made up its id', async () => {
    const { access, reads } = createWorld({});
    expect(await access.namedDefinition(demo.id, 'permit')).toMatchObject({ id: 'permit' });
    expect(reads).toEqual([{ permission: true }]);
    await expect(access.namedDefinition(demo.id, 'absent')).rejects.toMatchObject({ slug: 'not-found' });
    await expect(access.namedDefinition('urn:tenant:other', 'permit')).rejects.toMatchObject({ slug: 'not-found' });
    expect(reads[2]).toMatchObject({ permission: true, isChosen: true });
  });

  it('that validates form data may be older, and no change of the data succeeds without it', async () => {
    const { access, reads } = createWorld({});
    expect(await access.definitionOf(form)).toMatchObject({ id: 'permit' });
    expect(reads).toEqual([{ permission: false }]);
    await expect(access.definitionOf({ ...form, definitionId: 'absent' })).rejects.toMatchObject({ slug: 'conflict' });
  });
});

describe('a request for a form', () => {
  it('names the form, the caller and the tenant of the call', () => {
    const { response } = createExchange({ locals: { caller: creator, tenant: demo } });
    expect(formRequestOf(response, formId)).toEqual({ caller: creator, tenantId: demo.id, formId });
  });

  it('that loses every race gets a conflict', () => {
    expect(keepsChanging()).toMatchObject({ slug: 'conflict' });
  });
});

describe('the code of a request', () => {
  const code = (inHeader: string | undefined, inQuery: string | undefined) =>
    codeOf(createExchange({ headers: inHeader === undefined ? {} : { 'x-form-code': inHeader } }).request, inQuery);

  it('is in the header or in the query, without the spaces around it', () => {
    expect(code(' ABC ', 'DEF')).toBe('ABC');
    expect(code('  ', ' DEF ')).toBe('DEF');
    expect(code(undefined, 'DEF')).toBe('DEF');
    expect([code(undefined, undefined), code('', '  ')]).toEqual([undefined, undefined]);
  });
});

describe('If-Match', () => {
  const revisions = (header: string | undefined) => revisionsOf({ get: () => header });

  it('allows any revision if it is absent, and otherwise those that it names', () => {
    expect(revisions(undefined)).toBeUndefined();
    expect(revisions('"3", "4"')).toEqual(['3', '4']);
  });

  it('that has no entity tags gets 400 with a pointer to the header', () => {
    const error = { pointer: '/headers/if-match', detail: 'must be entity tags' };
    expect(() => revisions('3')).toThrow(expect.objectContaining({ slug: 'invalid-request', errors: [error] }));
  });

  it('that excludes the present revision gets 412', () => {
    expect(stale()).toMatchObject({ slug: 'stale' });
  });
});

describe('a save', () => {
  async function save(who: Caller, options: ExchangeOptions = {}) {
    const guard = mayUpdateData(createWorld({ form }).access);
    expect(guard.name).toBe('mayUpdateData');
    const exchange = createExchange({ params: { formId }, ...options, locals: { caller: who, tenant: demo } });
    return { problem: await refusal(guard, exchange), found: exchange.response.locals.authorized };
  }

  it('of the applicant is authorized before the body is read, and the route gets the form', async () => {
    expect(await save(creator)).toEqual({ problem: undefined, found: { form, role: 'applicant' } });
    const params = { formId: formId.toUpperCase() };
    expect(await save(creator, { params })).toMatchObject({ problem: undefined, found: { form } });
  });

  it('of another person is refused before the body is read', async () => {
    expect(await save(caller('otto', 'visitor'))).toMatchObject({ problem: { slug: 'forbidden' } });
  });

  it('of an intake application passes at once, because the statement that saves decides', () => {
    const { request, response } = createExchange({
      params: { formId: 'x' },
      locals: { caller: caller('k', 'intake-application') },
    });
    expect(mayUpdateData(createWorld({}).access).check(request, response)).toBeUndefined();
    expect(response.locals).not.toHaveProperty('authorized');
  });

  it('of a form whose id is not a UUID gets 400 with a pointer to it', async () => {
    expect(await save(creator, { params: { formId: 'x' } })).toMatchObject({
      problem: { slug: 'invalid-request', errors: [{ pointer: '/params/formId', detail: 'must be a UUID' }] },
    });
  });
});
