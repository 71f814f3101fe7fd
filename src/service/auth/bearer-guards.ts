// Guards for route tables. They verify the bearer token, require a role of the caller, and find the tenant of a call.
import type { Request, Response } from 'express';
import { type Guard, isGuarded } from '../http/http-app.ts';
import { invalidRequest, Problem } from '../http/problem.ts';
import { callerOf, queryOf } from '../http/request-context.ts';
import type { BearerVerifier, Caller, Tenant, Tenants } from './identity.ts';

/**
 * Requires a bearer token for one of `audiences`, and stores its caller in `locals.caller`. Throws 401 if the token is
 * missing or invalid.
 */
export function bearer(verifier: BearerVerifier, audiences: readonly string[] | 'any'): Guard {
  return {
    name: 'bearer',
    admits: ['bearer'],
    check(request, response) {
      return keepResult(verifier.verify(request.headers.authorization, audiences), (caller) => {
        response.locals.caller = caller;
      });
    },
  };
}

/** Requires at least one of `roles`. Throws 403 otherwise. */
export function role(...roles: string[]): Guard {
  return {
    name: `role(${roles.join(', ')})`,
    check(_request, response) {
      const caller = callerOf(response);
      if (!roles.some((name) => caller.roles.has(name)))
        throw new Problem(
          'forbidden',
          `This operation requires ${roles.length > 1 ? 'one of the roles' : 'the role'} ${roles.join(', ')}.`,
        );
    },
  };
}

/**
 * Stores the tenant of the call in `locals.tenant`. A caller of the realm `core` (a core caller) names the tenant in
 * the query parameter `tenantId`. For any other caller, the tenant is that of the token's realm. Throws 400 if a core
 * caller names no known tenant. Throws 403 if any other caller names a tenant that is not its own.
 */
export function callTenant(tenants: Pick<Tenants, 'byId'>): Guard {
  return {
    name: 'tenant',
    check(request, response) {
      const tenant = resolveTenant(callerOf(response), tenantParameter(request), tenants);
      return keepResult(tenant, (known) => {
        response.locals.tenant = known;
      });
    },
  };
}

/**
 * Like `callTenant`, but a core caller may omit `tenantId`. The call is then for all tenants, and `locals.tenant` stays
 * undefined.
 */
export function callTenantOrAll(tenants: Pick<Tenants, 'byId'>): Guard {
  const one = callTenant(tenants);
  return {
    name: 'tenantOrAll',
    check(request, response) {
      const isForAll = !callerOf(response).tenant && tenantParameter(request) === undefined;
      return isForAll ? undefined : one.check(request, response);
    },
  };
}

export interface IfBearerOptions {
  /**
   * True to treat a request with another authorization scheme as a request without an Authorization header. If a proxy
   * in front of the site asks for a password, browsers send `Basic` with every request, in addition to the session
   * cookie.
   */
  ignoresOtherSchemes?: boolean;
}

/**
 * Applies `bearerGuards` to requests with an Authorization header, and the guards of `otherwise` to all other requests.
 * Throws if one of the lists has no guard that admits callers.
 */
export function ifBearer(
  bearerGuards: readonly Guard[],
  otherwise: readonly Guard[],
  { ignoresOtherSchemes = false }: IfBearerOptions = {},
): Guard {
  for (const guards of [bearerGuards, otherwise])
    if (!isGuarded({ guards })) throw new Error(`ifBearer: no guard admits callers among ${namesOf(guards)}`);
  return {
    name: `ifBearer(${namesOf(bearerGuards)}; else ${namesOf(otherwise)})`,
    admits: [...new Set([...bearerGuards, ...otherwise].flatMap(({ admits = [] }) => admits))],
    async check(request, response) {
      const { authorization } = request.headers;
      const isIgnored = ignoresOtherSchemes && !/^bearer\b/i.test(authorization ?? '');
      if (authorization !== undefined && !isIgnored) return passAll(bearerGuards, request, response);
      try {
        await passAll(otherwise, request, response);
      } catch (error) {
        // RFC 9110, section 15.5.2: a 401 response must say how to authenticate.
        if (error instanceof Problem && error.status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
        throw error;
      }
    },
  };
}

async function passAll(guards: readonly Guard[], request: Request, response: Response): Promise<void> {
  for (const guard of guards) await guard.check(request, response);
}

function namesOf(guards: readonly Guard[]): string {
  return guards.map(({ name }) => name).join(', ');
}

function tenantParameter(request: Request): string | undefined {
  const value = queryOf(request).tenantId;
  if (value === undefined || typeof value === 'string') return value || undefined;
  throw tenantProblem('must be given once');
}

function resolveTenant(
  caller: Caller,
  tenantId: string | undefined,
  tenants: Pick<Tenants, 'byId'>,
): Tenant | Promise<Tenant> {
  if (caller.tenant) {
    if (tenantId === undefined || tenantId === caller.tenant.id) return caller.tenant;
    throw new Problem('forbidden', 'The caller belongs to another tenant.');
  }
  if (tenantId === undefined) throw tenantProblem('is required for core users');
  return tenants.byId(tenantId).then((tenant) => {
    if (!tenant) throw tenantProblem('is not the id of a tenant');
    return tenant;
  });
}

function tenantProblem(detail: string): Problem {
  return invalidRequest([{ pointer: '/query/tenantId', detail }]);
}

/**
 * Passes the value to `keep`. Does not wait for a value that is not a promise: the token and the tenant of most
 * requests are cached, and waiting would take longer than the lookup.
 */
function keepResult<T>(value: T | Promise<T>, keep: (known: T) => void): void | Promise<void> {
  return value instanceof Promise ? value.then(keep) : keep(value);
}
