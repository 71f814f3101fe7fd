// The routes for sessions in an app of their own. The sessions are in memory, and the words after `Bearer` stand in for
// the tokens of administrators.

import { callTenant } from '../../src/service/auth/bearer-guards.ts';
import type { Tenant } from '../../src/service/auth/identity.ts';
import type { Guard } from '../../src/service/http/http-app.ts';
import { Problem } from '../../src/service/http/problem.ts';
import type { LocalRateLimiter } from '../../src/service/limits/rate-limit.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { csrfToken } from '../../src/token-handler/sessions/cookies.ts';
import { seenSession, sessionTenant } from '../../src/token-handler/sessions/guards.ts';
import {
  deleteSessionRoute,
  listSessionsRoute,
  type SessionRouteOptions,
} from '../../src/token-handler/sessions/routes.ts';
import { type ListeningApp, startApp } from './listening-app.ts';
import { createMemorySessions, type MemorySessions, tenantId, type Visitor } from './memory-sessions.ts';

export const demo: Tenant = { id: tenantId, name: 'Demo', realm: 'demo' };
export const other: Tenant = { id: 'urn:tenant:other', name: 'Other', realm: 'other' };
const tenants: readonly Tenant[] = [demo, other];

const roles = new Set(['token-handler-admin']);

/** The callers of the tokens `admin`, `reader`, `stranger` and `core`. */
const callers = {
  admin: { tenant: demo, roles },
  reader: { tenant: demo, roles: new Set(['reader']) },
  stranger: { tenant: other, roles },
  core: { roles },
};

/** A guard for bearer tokens that accepts the names of `callers`. */
export const scriptedBearer: Guard = {
  name: 'bearer',
  admits: ['bearer'],
  check({ headers: { authorization } }, response) {
    const name = authorization?.slice('Bearer '.length) ?? '';
    if (!Object.hasOwn(callers, name)) throw new Problem('unauthenticated', 'The token is invalid.');
    const issuer = 'https://id.example.org/realms/demo';
    const common = { subject: name, name, issuer, realm: 'demo', clientId: 'cli', isCore: name === 'core' };
    response.locals.caller = { ...common, ...callers[name as keyof typeof callers] };
  },
};

const byId = async (id: string) => tenants.find((tenant) => tenant.id === id);

/** A guard that finds the tenant of the caller. */
export const scriptedTenant: Guard = callTenant({ byId });

export interface Reply {
  status: number;
  headers: Headers;
  /** A list, or a problem with a type and perhaps errors. */
  body: { id: string; person?: string; tenant?: unknown }[] & { type?: string; errors?: unknown[] };
}

export async function ask(url: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(url, init);
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

export interface SessionRoutes {
  world: MemorySessions;
  options: SessionRouteOptions;
  /** The kinds of the counted logouts. */
  logouts: string[];
  /** The keys that the limit of requests by person has counted. */
  limited: string[];
  app: ListeningApp;
  list(by: Visitor | string, query?: string, headers?: Record<string, string>): Promise<Reply>;
  end(by: Visitor | string, id: string, headers?: Record<string, string>): Promise<Reply>;
  /** Starts the app again, with changed options. */
  restart(changes: Partial<SessionRouteOptions>): Promise<void>;
}

/** `by` of `list` and `end` is a person with a session, or the name of a bearer token. */
function headersOf(by: Visitor | string): Record<string, string> {
  if (typeof by === 'string') return { authorization: `Bearer ${by}` };
  return { cookie: by.request().headers.cookie ?? '', 'x-xsrf-token': csrfToken(by.session) };
}

export async function startSessionRoutes(): Promise<SessionRoutes> {
  const world = createMemorySessions();
  const [logouts, limited]: [string[], string[]] = [[], []];
  const personLimit: LocalRateLimiter = {
    ...{ name: 'person', most: 1_000, window: 60_000, uncount: () => undefined },
    count(key) {
      limited.push(key);
      return { isAllowed: true, remaining: 1, reset: 7 };
    },
  };
  const options: SessionRouteOptions = {
    notEmbedded: { name: 'notEmbedded', check: () => undefined },
    addressLimit: { name: 'addressLimit', check: () => undefined },
    personLimit,
    seenSession: seenSession(world.sessions),
    sessionTenant: sessionTenant({ byId, byName: async () => undefined }, 'X-PLATFORM-TENANT'),
    ...{ bearer: scriptedBearer, tenant: scriptedTenant, tenants: { byId } },
    ...{ sessions: world.sessions, metrics: createMetrics() },
    logouts: { count: (kind) => void logouts.push(kind) },
  };
  const start = () => startApp([listSessionsRoute(options), deleteSessionRoute(options)]);
  const base = () => `${routes.app.url}/token-handler/v1/sessions`;
  const routes: SessionRoutes = {
    ...{ world, options, logouts, limited, app: await start() },
    list: (by, query = '', headers = {}) => ask(`${base()}${query}`, { headers: { ...headersOf(by), ...headers } }),
    end: (by, id, headers = {}) =>
      ask(`${base()}/${id}`, { method: 'DELETE', headers: { ...headersOf(by), ...headers } }),
    async restart(changes) {
      Object.assign(options, changes);
      await routes.app.close();
      routes.app = await start();
    },
  };
  return routes;
}
