// Tests the order of the steps of a registration and of an update, and what remains to be done if a step fails. The
// test records the steps in memory and decides which of them fail.
import { beforeEach, describe, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { Problem } from '../../service/http/problem.ts';
import type { DeletableClient } from './leftover-clients.ts';
import type { ChangeOutcome, RegisterOutcome } from './provider-registration.ts';
import { createRegistrar, type Registrar } from './registrar.ts';
import type { StoredRegistration } from './registration.ts';
import type { ChangeWork } from './registration-store.ts';

const now = new Date('2026-08-20T17:00:00Z');
const tenant = { id: 'urn:example:tenants/demo', name: 'Demo', realm: 'demo' };
const callback = 'https://permits.example.org/cb';
const client = {
  ...{ id: 'permits-web', name: 'Permits', redirectUris: [callback], targets: [], keycloakLogout: false },
  ...{ scope: ['openid'], core: false },
};
const by = { subject: 'alice', name: 'Alice' };
const owner = { tenantId: tenant.id, clientId: client.id, realm: 'demo', issuer: null };
const issued = {
  oidcClientId: 'oidc-1',
  clientSecret: 'the secret',
  registrationAccessToken: 'the token',
  registrationClientUri: 'https://access.example.org/clients/oidc-1',
  management: 'kept' as const,
};
const name = 'permits-web (registration 1)';

/** The steps that ran, in order, with their arguments. */
let steps: [string, ...unknown[]][];
/** Names of the steps that fail. */
let failing: Set<string>;
let registered: RegisterOutcome;
let changeOutcome: ChangeOutcome;
let present: StoredRegistration | undefined;
let deletable: DeletableClient[];
/** Outcomes of deletions at the identity provider, keyed by registration URI. Deletions with other URIs fail. */
let removals: Record<string, 'removed' | 'refused'>;
let tasks: (() => Promise<void>)[];
let log: CapturedLog;
let issuer: string | undefined;
let registrar: Registrar;

const names = () => steps.map(([step]) => step);
const given = (step: string) => steps.filter(([each]) => each === step).map(([, ...rest]) => rest);

async function step<T>(what: string, args: unknown[], result: T): Promise<T> {
  steps.push([what, ...args]);
  if (failing.has(what)) throw new Error(`${what} failed`);
  return result;
}

beforeEach(() => {
  steps = [];
  failing = new Set();
  registered = { kind: 'registered', client: issued };
  changeOutcome = { kind: 'failed' };
  present = undefined;
  deletable = [];
  removals = {};
  tasks = [];
  issuer = undefined;
  log = captureLog();
  registrar = createRegistrar({
    store: {
      find: async () => undefined,
      summaries: async () => new Map(),
      begin: (...args) => step('begin', args, { id: 'attempt-1', clientName: name }),
      forget: (...args) => step('forget', args, undefined),
      giveUp: (...args) => step('give up', args, undefined),
      replace: (...args) => step('replace', args, undefined),
      provide: (...args) => step('provide', args, undefined),
      discard: (...args) => step('discard', args, undefined),
      async change<T>(tenantId: string, clientId: string, work: ChangeWork<T>) {
        const { result, changed } = await work(present);
        return step('commit', [tenantId, clientId, changed], result);
      },
      save: (...args) => step('save', args, undefined),
    },
    leftovers: {
      deletable: (...args) => step('deletable', args, deletable),
      forget: (...args) => step('forget leftover', args, undefined),
      list: async () => [],
      recordLostAttempts: async () => [],
      recordRefused: async () => undefined,
      count: async () => 0,
      prune: async () => undefined,
    },
    provider: {
      register: (...args) => step('register', args, registered),
      change: (...args) => step('change', args, changeOutcome),
      async remove(managed) {
        const outcome = removals[managed.registrationClientUri];
        await step('remove', [managed], undefined);
        if (!outcome) throw new Error('the deletion failed');
        return outcome;
      },
    },
    background: {
      untilDone(about, work) {
        steps.push(['later', about]);
        tasks.push(work);
      },
      close: async () => undefined,
    },
    ...{ publicUrl: 'https://th.example.org', mappedIssuer: () => issuer, clock: () => now, log: log.log },
    changed: () => void steps.push(['nudge']),
  });
});

async function problemOf(attempt: Promise<void>): Promise<unknown> {
  try {
    await attempt;
    return undefined;
  } catch (error) {
    if (!(error instanceof Problem)) return error;
    return { slug: error.slug, detail: error.detail, errors: error.errors, cause: error.cause };
  }
}

describe('a registration', () => {
  const register = (authCallbackUrl?: string) =>
    registrar.register({ tenant, client, registrationToken: 'initial', authCallbackUrl, by });

  it('is recorded before the identity provider is asked, and then stored with its event', async () => {
    await register();
    expect(names()).toEqual(['begin', 'register', 'replace', 'nudge', 'deletable']);
    expect(given('begin')).toEqual([[{ ...owner, started: now, isLimited: true }]]);
    expect(given('register')).toEqual([
      [
        'demo',
        expect.objectContaining({
          client_name: name,
          redirect_uris: [callback],
          backchannel_logout_uri: expect.stringContaining('https://th.example.org/'),
        }),
        'initial',
      ],
    ]);
    const stored = {
      ...{ ...owner, ...issued, clientName: name, authentication: 'client_secret_basic' },
      ...{ redirectUris: [callback], registeredAt: now },
    };
    const shown = { id: 'permits-web', name: 'Permits', clientId: 'oidc-1' };
    const event = {
      name: 'client-registered',
      payload: { client: shown, registeredBy: { id: 'alice', name: 'Alice' } },
    };
    expect(given('replace')).toEqual([[stored, 'attempt-1', event]]);
    expect(given('deletable')).toEqual([[owner]]);
  });

  it.each([
    ['is added to the redirect URIs', 'https://permits.example.org/old', [callback, 'https://permits.example.org/old']],
    ['is not added twice', callback, [callback]],
    ['is not added if it is empty', '', [callback]],
  ])('with the deprecated callback URL, which %s', async (_, url, redirectUris) => {
    await register(url);
    expect(given('register')[0]?.[1]).toMatchObject({ redirect_uris: redirectUris });
    expect(given('replace')[0]?.[0]).toMatchObject({ redirectUris });
    expect(given('replace')[0]?.[2]).toMatchObject({ payload: { client: { authCallbackUrl: url } } });
  });

  it('belongs to the issuer that the operator has mapped', async () => {
    issuer = 'https://login.example.org';
    await register();
    expect(given('replace')[0]?.[0]).toMatchObject({ issuer });
  });

  it('does not reach the identity provider if the attempt cannot be recorded', async () => {
    failing.add('begin');
    expect(await problemOf(register())).toEqual(new Error('begin failed'));
    expect(names()).toEqual(['begin']);
  });

  it.each<[string, RegisterOutcome, object]>([
    [
      'has no dynamic registration',
      { kind: 'unsupported' },
      {
        slug: 'invalid-request',
        errors: [{ pointer: '/registrationToken', detail: expect.stringContaining('send clientId') }],
      },
    ],
    [
      'refuses the token',
      { kind: 'token-refused', code: 'invalid_token' },
      {
        errors: [{ pointer: '/registrationToken', detail: 'is not accepted by the identity provider (invalid_token)' }],
      },
    ],
    [
      'refuses the token without a code',
      { kind: 'token-refused', code: undefined },
      { errors: [{ pointer: '/registrationToken', detail: 'is not accepted by the identity provider' }] },
    ],
    [
      'refuses the registration',
      { kind: 'refused', code: 'invalid_redirect_uri' },
      {
        errors: [
          { pointer: '', detail: 'the registration is refused by the identity provider (invalid_redirect_uri)' },
        ],
      },
    ],
    [
      'fails before it creates a client',
      { kind: 'failed', mayExist: false, cause: new Error('down') },
      { slug: 'dependency-failed', cause: new Error('down') },
    ],
  ])('leaves nothing if the identity provider %s', async (_, outcome, problem) => {
    registered = outcome;
    expect(await problemOf(register())).toMatchObject(problem);
    expect(names()).toEqual(['begin', 'register', 'forget']);
    expect(given('forget')).toEqual([['attempt-1', owner]]);
  });

  it('that may have created a client is recorded as a leftover', async () => {
    registered = { kind: 'failed', mayExist: true, cause: new Error('down') };
    expect(await problemOf(register())).toMatchObject({ slug: 'dependency-failed' });
    expect(names()).toEqual(['begin', 'register', 'give up', 'nudge']);
    expect(given('give up')).toEqual([['attempt-1', owner]]);
  });

  it('reports why it failed, even if the attempt cannot be settled', async () => {
    failing.add('forget').add('give up');
    registered = { kind: 'refused', code: undefined };
    expect(await problemOf(register())).toMatchObject({ slug: 'invalid-request' });
    registered = { kind: 'failed', mayExist: true, cause: undefined };
    expect(await problemOf(register())).toMatchObject({ slug: 'dependency-failed' });
  });

  it('that cannot be stored fails, and the new client is discarded in the background', async () => {
    failing.add('replace');
    expect(await problemOf(register())).toEqual(new Error('replace failed'));
    expect(names()).toEqual(['begin', 'register', 'replace', 'later']);
    expect(given('later')).toEqual([
      [{ task: 'discard unused client', client: 'permits-web', tenant: tenant.id, oidcClientId: 'oidc-1' }],
    ]);
    await tasks[0]?.();
    expect(names().slice(4)).toEqual(['discard', 'nudge']);
    expect(given('discard')).toEqual([[given('replace')[0]?.[0], 'attempt-1', now]]);
  });

  describe('after which leftovers of earlier attempts can be deleted', () => {
    const leftover = (id: string) => ({ id, oidcClientId: `oidc-${id}`, registrationClientUri: `https://a/${id}` });

    it('deletes them with the token of the request, unless that is refused', async () => {
      deletable = ['2', '3', '4'].map(leftover);
      removals = { 'https://a/2': 'removed', 'https://a/3': 'refused', 'https://a/4': 'removed' };
      await register();
      expect(given('remove')).toEqual(
        deletable.map(({ registrationClientUri }) => [
          { realm: 'demo', issuer: null, registrationAccessToken: 'initial', registrationClientUri },
        ]),
      );
      expect(given('forget leftover')).toEqual([['2'], ['4']]);
      expect(log.lines()).toMatchObject([
        { level: 'info', tenant: tenant.id, client: 'permits-web', oidcClientId: 'oidc-2' },
        { level: 'info', oidcClientId: 'oidc-4' },
      ]);
    });

    it('stops at the first deletion that fails, and succeeds anyway', async () => {
      deletable = ['2', '3'].map(leftover);
      removals = { 'https://a/3': 'removed' };
      await register();
      expect([given('remove').length, given('forget leftover')]).toEqual([1, []]);
      expect(log.lines()).toMatchObject([
        { tenant: tenant.id, client: 'permits-web', oidcClientId: 'oidc-2', err: { message: 'the deletion failed' } },
      ]);
    });

    it('succeeds if they cannot be read', async () => {
      failing.add('deletable');
      await register();
      expect(given('remove')).toEqual([]);
    });
  });
});

describe('an update', () => {
  const redirectUris = ['https://permits.example.org/new'];
  const stored = (changes: Partial<StoredRegistration> = {}): StoredRegistration => ({
    ...{ ...owner, ...issued, clientName: name, authentication: 'client_secret_basic', redirectUris: [callback] },
    ...{ registeredAt: now, revision: 3, ...changes },
  });
  const renewed = () => stored({ registrationAccessToken: 'new token', redirectUris });
  const update = () => registrar.update({ tenant, client, redirectUris });
  const committed = () => given('commit')[0];

  it('changes the client at the identity provider, and stores what that issues', async () => {
    present = stored();
    changeOutcome = { kind: 'changed', client: renewed() };
    await update();
    expect(names()).toEqual(['change', 'commit']);
    const metadata = { client_name: name, redirect_uris: redirectUris };
    expect(given('change')).toEqual([[present, expect.objectContaining(metadata)]]);
    expect(given('change')[0]?.[1]).toHaveProperty('backchannel_logout_uri');
    expect(committed()).toEqual([tenant.id, 'permits-web', renewed()]);
  });

  it('keeps the name that an older version gave the client', async () => {
    present = stored({ clientName: null });
    changeOutcome = { kind: 'changed', client: renewed() };
    await update();
    expect(given('change')[0]?.[1]).toMatchObject({ client_name: 'permits-web' });
  });

  it.each<[string, StoredRegistration | undefined, string, RegExp]>([
    ['is not registered', undefined, 'registration-required', /is not registered/],
    ['has lost its token', stored({ management: 'lost' }), 'registration-required', /token .* was lost/],
    ['never had a token', stored({ management: 'unsupported' }), 'registration-required', /issued no token/],
    ['was provided', stored({ management: 'provided' }), 'conflict', /An administrator provided/],
  ])('is refused for a client that %s', async (_, registration, slug, detail) => {
    present = registration;
    expect(await problemOf(update())).toMatchObject({ slug, detail: expect.stringMatching(detail) });
    expect(names()).toEqual([]);
  });

  it.each<[ChangeOutcome, object, StoredRegistration | undefined]>([
    [
      { kind: 'lost' },
      { slug: 'registration-required', detail: expect.stringContaining('was lost') },
      stored({ management: 'lost' }),
    ],
    [{ kind: 'gone' }, { slug: 'registration-required', detail: expect.stringContaining('does not know') }, undefined],
    [
      { kind: 'refused', code: 'invalid_redirect_uri' },
      {
        errors: [
          { pointer: '/redirectUris', detail: 'are not accepted by the identity provider (invalid_redirect_uri)' },
        ],
      },
      undefined,
    ],
    [{ kind: 'failed' }, { slug: 'dependency-failed' }, undefined],
    [{ kind: 'failed', client: renewed() }, { slug: 'dependency-failed' }, renewed()],
  ])('that comes to %j fails, and stores what is known', async (outcome, problem, changed) => {
    present = stored();
    changeOutcome = outcome;
    expect(await problemOf(update())).toMatchObject(problem);
    expect(names()).toEqual(['change', 'commit']);
    expect(committed()?.[2]).toEqual(changed);
  });

  it('that cannot be committed fails, and the new token is stored in the background', async () => {
    present = stored();
    changeOutcome = { kind: 'changed', client: renewed() };
    failing.add('commit');
    expect(await problemOf(update())).toEqual(new Error('commit failed'));
    expect(given('later')).toEqual([
      [{ task: 'store registration access token', client: 'permits-web', tenant: tenant.id }],
    ]);
    await tasks[0]?.();
    expect(given('save')).toEqual([[renewed()]]);
  });

  it('that cannot be committed leaves nothing to store if the identity provider issued nothing', async () => {
    present = stored();
    changeOutcome = { kind: 'refused', code: undefined };
    failing.add('commit');
    expect(await problemOf(update())).toEqual(new Error('commit failed'));
    expect(tasks).toEqual([]);
  });
});
