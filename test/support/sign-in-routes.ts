// The routes for sign-in and its callback with scripted modules: a test sets what each module returns, and reads what
// it was called with. Attempts and their cookies are real, and so are the marks of used attempts, in memory.
import { createKeyRing } from '../../src/service/keys/key-ring.ts';
import type { Client } from '../../src/token-handler/clients/client.ts';
import type { Registration } from '../../src/token-handler/clients/registration.ts';
import type { SignInFacts } from '../../src/token-handler/pages/catalogue.ts';
import { createMemoryStore } from '../../src/token-handler/sessions/memory-store.ts';
import type { Landing } from '../../src/token-handler/sessions/records.ts';
import type { Marks } from '../../src/token-handler/sessions/store.ts';
import { createAttemptCookies } from '../../src/token-handler/sign-in/attempt-cookies.ts';
import { createAttempts } from '../../src/token-handler/sign-in/attempts.ts';
import type { RelyingParty } from '../../src/token-handler/sign-in/relying-party.ts';
import { authRoute, callbackRoute, type SignInOptions } from '../../src/token-handler/sign-in/routes.ts';
import { type ListeningApp, startApp } from './listening-app.ts';

export const signInTenant = { id: 'urn:tenant:demo', name: 'Demo', realm: 'demo' };
export const otherTenant = { id: 'urn:tenant:other', name: 'Other', realm: 'other' };
export const signInCallback = 'https://app.example.org/token-handler/clients/web/callback';
export const oidcRegistration = { realm: 'demo', oidcClientId: 'oidc-web' } as Registration;

/** What the scripted modules were called with, in order. */
interface Calls {
  guards: string[];
  authorizations: [Registration, Parameters<RelyingParty['authorizationUrl']>[1]][];
  redeemed: Parameters<RelyingParty['redeem']>[];
  opened: Parameters<SignInOptions['openSession']>[0][];
  /** The marks of used attempts, with the milliseconds for which they are kept. */
  claimed: [mark: string, forMilliseconds: number][];
  /** The outcomes that were counted. */
  counted: unknown[];
  begun: Parameters<SignInOptions['attempts']['begin']>[0][];
}

export interface Answered {
  status: number;
  location: string | null;
  /** The pointer of the first invalid field. */
  pointer: string | undefined;
  detail: string | undefined;
  setCookies: string[];
}

export interface SignInRoutes {
  options: SignInOptions;
  client: Client;
  calls: Calls;
  /** The session of the browser at the next requests. */
  session: { signedIn?: { clientId: string; handle: string }; landings?: Landing[] };
  /** The marks of used attempts. */
  marks: Marks;
  /** The time of the routes' clock, in milliseconds since 1970. */
  now: number;
  app: ListeningApp;
  /** The facts that the last failed request has noted for its page. */
  facts: SignInFacts | undefined;
  /** Requests a path below the client. */
  visit(path: string, headers?: Record<string, string>): Promise<Answered>;
  /** Starts a sign-in. Returns its state and the Cookie header that the browser sends to the callback. */
  begin(query?: Record<string, string>): Promise<{ state: string; cookie: string }>;
  /** Requests the callback, with a code by default. */
  finish(begun: { state: string; cookie: string }, query?: string, headers?: Record<string, string>): Promise<Answered>;
}

export const authPath = (query: Record<string, string>) =>
  `auth?${new URLSearchParams({ tenant: 'demo', callbackUrl: signInCallback, ...query })}`;

const guard = (calls: Calls, name: string) => ({ name, check: () => void calls.guards.push(name) });

function scriptedOptions(world: SignInRoutes, calls: Calls): SignInOptions {
  const keys = createKeyRing(`one:${Buffer.alloc(32, 1).toString('base64')}`);
  const clock = () => new Date(world.now);
  world.marks = createMemoryStore({ idle: 3_600_000, clock }).marks;
  const { claim } = world.marks;
  world.marks.claim = (mark, value, forMilliseconds) => {
    calls.claimed.push([mark, forMilliseconds]);
    return claim(mark, value, forMilliseconds);
  };
  const attempts = createAttempts({ keys, clock, marks: world.marks });
  const { begin } = attempts;
  attempts.begin = (signIn) => {
    calls.begun.push(signIn);
    return begin(signIn);
  };
  const tenants = [signInTenant, otherTenant];
  return {
    ...{ attempts, attemptCookies: createAttemptCookies('session', attempts), tenantHeader: 'X-Tenant' },
    tenants: {
      byId: async (id) => tenants.find((tenant) => tenant.id === id),
      byName: async (name) => tenants.find((tenant) => tenant.name.toLowerCase() === name.toLowerCase()),
    },
    catalog: { find: async ({ id }, clientId) => [world.client].find((one) => id && one.id === clientId) },
    registrations: { find: async () => oidcRegistration },
    relyingParty: {
      async authorizationUrl(registration, request) {
        calls.authorizations.push([registration as Registration, request]);
        return new URL(`https://id.example.org/auth?state=${request.state}`);
      },
      async redeem(...given) {
        calls.redeemed.push(given);
        return { tokens: { access_token: 'a token' }, claims: { sub: 'ana' } };
      },
    } as RelyingParty,
    sessions: { read: async () => undefined },
    async openSession(signedIn, _request, response) {
      calls.opened.push(signedIn);
      response.locals.signedIn = { tenantId: signedIn.tenant.id, clientId: signedIn.client.id, subject: 'ana' };
    },
    outcomes: {
      succeeded: (client) => void calls.counted.push(client),
      cancelled: () => void calls.counted.push('cancelled'),
      providerError: (_client, response) => void (response && calls.counted.push(response.error)),
      observe: (_endpoint, route) => route,
    },
    browserSession: {
      name: 'browserSession',
      check: (request) => void Object.assign(request, { session: world.session }),
    },
    providerLogouts: { time: async () => world.now },
    notEmbedded: guard(calls, 'notEmbedded'),
    signInLimit: guard(calls, 'signInLimit'),
    cookieScheme: guard(calls, 'cookieScheme'),
  };
}

export async function startSignInRoutes(): Promise<SignInRoutes> {
  const calls: Calls = {
    ...{ guards: [], authorizations: [], redeemed: [], opened: [], claimed: [], counted: [], begun: [] },
  };
  const world = {
    ...{ calls, session: {}, now: 1_800_000_000_000, facts: undefined },
    client: { id: 'web', name: 'Web', scope: ['openid', 'email'], core: false } as Client,
    async visit(path, headers = {}) {
      const response = await fetch(`${world.app.url}/token-handler/v1/clients/${path}`, {
        ...{ headers, redirect: 'manual' },
      });
      const { errors = [], detail } = response.status < 400 ? {} : ((await response.json()) as Problem);
      return {
        status: response.status,
        location: response.headers.get('location'),
        pointer: errors[0]?.pointer,
        detail: errors[0]?.detail ?? detail,
        setCookies: response.headers.getSetCookie(),
      };
    },
    async begin(query = {}) {
      const { location, setCookies } = await world.visit(`web/${authPath(query)}`);
      const cookie = setCookies[0]?.split(';', 1)[0] ?? '';
      return { state: new URL(location ?? '').searchParams.get('state') ?? '', cookie };
    },
    finish: ({ state, cookie }, query = 'code=a-code', headers = {}) =>
      world.visit(`web/callback?state=${state}&${query}`, { cookie, ...headers }),
  } as SignInRoutes;
  world.options = scriptedOptions(world, calls);
  world.app = await startApp([authRoute(world.options), callbackRoute(world.options)], {
    trustedProxies: ['loopback'],
    presentProblem: (_problem, _request, response) => {
      world.facts = response.locals.signInFacts;
      return undefined;
    },
  });
  return world;
}

interface Problem {
  errors?: { pointer: string; detail: string }[];
  detail?: string;
}
