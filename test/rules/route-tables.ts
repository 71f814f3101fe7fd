// The route tables of all processes, built without a database or a platform. The guards have their real names. Objects
// that a route uses only during a request are missing.
import { MemoryStore } from 'express-session';
import { type FormsRoutesOptions, formsRoutes } from '../../src/forms/app.ts';
import { createApplyGuards } from '../../src/forms/apply/guards.ts';
import { creationLimits } from '../../src/forms/forms/creation-limits.ts';
import { createDataBody } from '../../src/forms/forms/schema.ts';
import { pageNames } from '../../src/forms/pages/page.ts';
import { createRegisterGuards } from '../../src/forms/registers/policy.ts';
import { createStorageLimit } from '../../src/forms/storage/storage-limit.ts';
import { type PlatformRoutesOptions, platformRoutes } from '../../src/platform-server/app.ts';
import { createConfigurationGuards } from '../../src/platform-server/configuration/policy.ts';
import { createReadBudget } from '../../src/platform-server/configuration/read-budget.ts';
import { bearer, callTenant, callTenantOrAll } from '../../src/service/auth/bearer-guards.ts';
import type { BearerVerifier, Tenants } from '../../src/service/auth/identity.ts';
import { systemClock } from '../../src/service/clock.ts';
import type { Route } from '../../src/service/http/http-app.ts';
import {
  addressLimit,
  type LocalRateLimiter,
  type RateLimiter,
  type RateLimits,
  rateLimit,
} from '../../src/service/limits/rate-limit.ts';
import { createUrns } from '../../src/service/urn.ts';
import { type TokenHandlerRoutesOptions, tokenHandlerRoutes } from '../../src/token-handler/app.ts';
import { cookieScheme } from '../../src/token-handler/sessions/cookies.ts';
import { csrf, liveSession, notEmbedded, seenSession, sessionTenant } from '../../src/token-handler/sessions/guards.ts';
import type { Sessions } from '../../src/token-handler/sessions/sessions.ts';
import { browserSession } from '../../src/token-handler/sign-in/browser-session.ts';

const urns = createUrns('urn:example');
const verifier = (() => Promise.reject(new Error('no request comes here'))) as unknown as BearerVerifier;
const tenants = {} as Tenants;
const limiter = (name: string) => ({ name, most: 1, window: 1_000 }) as RateLimiter;
const limits = { local: ({ name }) => limiter(name) } as RateLimits;
const signedIn = (service: string) => ({
  bearer: bearer(verifier, [urns.service(service)]),
  tenant: callTenant(tenants),
});

function formServiceRoutes(): Route[] {
  const applyGuards = createApplyGuards({
    cookies: {} as Parameters<typeof createApplyGuards>[0]['cookies'],
    store: {} as Parameters<typeof createApplyGuards>[0]['store'],
    ...{ tenants, publicOrigin: undefined },
    requests: limiter('apply-requests') as LocalRateLimiter,
    codes: limiter('apply-codes') as LocalRateLimiter,
    uploads: limiter('apply-uploads') as LocalRateLimiter,
  });
  const registerGuards = createRegisterGuards({ verifier, tenants, urns, anonymousReads: limiter('anonymous-reads') });
  return formsRoutes({
    about: {},
    apply: { guards: applyGuards },
    definitions: { ...registerGuards, checks: limiter('definition-checks') },
    forms: {
      ...{ ...signedIn('form-service'), ...creationLimits(limits), dataBody: createDataBody('urn:example') },
      storage: createStorageLimit({ limit: 1, read: () => Promise.resolve(undefined), onRefused: () => undefined })
        .storage,
    },
    operations: { ...signedIn('form-service'), tenantOrAll: callTenantOrAll(tenants) },
    pages: { pages: pageNames },
    quarantine: { ...signedIn('form-service'), tenantOrAll: callTenantOrAll(tenants) },
    registers: { urns, ...registerGuards },
  } as unknown as FormsRoutesOptions);
}

export function tokenHandlerApiRoutes(): Route[] {
  const sessionGuards = {
    liveSession: liveSession({} as Sessions),
    sessionTenant: sessionTenant(tenants, 'x-tenant'),
  };
  const cookie = { name: 'session', secrets: ['a secret of tests'] };
  const browser = browserSession(cookie as Parameters<typeof browserSession>[0], new MemoryStore());
  return tokenHandlerRoutes({
    about: {},
    clients: signedIn('token-handler'),
    signIn: {
      browserSession: browser,
      cookieScheme: cookieScheme('session'),
      notEmbedded: notEmbedded('session'),
      signInLimit: addressLimit(limiter('sign-in')),
      outcomes: { observe: (_step: string, item: Route) => item },
    },
    logout: {
      browserSession: browser,
      notEmbedded: notEmbedded('session'),
      signOutLimit: addressLimit(limiter('sign-out')),
      invalidLogoutTokens: addressLimit(limiter('invalid-logout-tokens')),
      validLogoutTokens: limiter('backchannel-logout'),
    },
    sessions: {
      ...{ ...signedIn('token-handler'), ...sessionGuards, seenSession: seenSession({} as Sessions) },
      notEmbedded: notEmbedded('session'),
      addressLimit: addressLimit(limiter('sessions-address')),
      personLimit: limiter('sessions-person'),
    },
    targets: {
      notEmbedded: notEmbedded('session'),
      addressLimit: addressLimit(limiter('targets-address')),
      ...sessionGuards,
      csrf,
      sessionLimit: rateLimit(limiter('targets-session'), () => ''),
    },
  } as unknown as TokenHandlerRoutesOptions);
}

export function platformServerRoutes(): Route[] {
  return platformRoutes({
    about: {},
    directory: {},
    tenants: signedIn('tenant-service'),
    configuration: {
      guards: createConfigurationGuards({
        ...{ verifier, tenants, urns, definitionOf: async () => undefined },
        anonymousReads: limiter('anonymous-reads'),
      }),
      budget: createReadBudget(systemClock),
    },
    events: signedIn('event-service'),
    notifications: signedIn('notification-service'),
  } as unknown as PlatformRoutesOptions);
}

/** The processes that serve HTTP. */
export const routedProcesses = [
  { title: 'Form service', routes: formServiceRoutes() },
  { title: 'Token handler', routes: tokenHandlerApiRoutes() },
  { title: 'Platform server', routes: platformServerRoutes() },
];
