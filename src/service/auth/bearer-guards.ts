// The guards that routes name: a verified bearer, a role, the tenant of the call.
import type { Request } from 'express';
import type { Guard } from '../http/http-app.ts';
import { invalidRequest, Problem } from '../http/problem.ts';
import { callerOf, queryOf } from '../http/request-context.ts';
import type { BearerVerifier, Caller, Tenant, Tenants } from './identity.ts';

/** A verified bearer for one of `audiences`; leaves it in `locals.caller`. 401 otherwise. */
export function bearer(verifier: BearerVerifier, audiences: readonly string[] | 'any'): Guard {
  return {
    name: 'bearer',
    admits: ['bearer'],
    check(request, response) {
      return atOnceOrLater(verifier.verify(request.headers.authorization, audiences), (caller) => {
        response.locals.caller = caller;
      });
    },
  };
}

/** A caller with at least one of `roles`; 403 otherwise. */
export function anyRole(...roles: string[]): Guard {
  return {
    name: `anyRole(${roles.join(', ')})`,
    check(_request, response) {
      const caller = callerOf(response);
      if (!roles.some((role) => caller.roles.has(role)))
        throw new Problem('forbidden', 'The caller has none of the roles that this call needs.');
    },
  };
}

/**
 * The tenant of the call, left in `locals.tenant`: the token's realm, or for a core caller the `tenantId` query. A core
 * caller without it, or with an unknown one: 400. A tenant's caller that names another tenant: 403.
 */
export function callTenant(tenants: Pick<Tenants, 'byId'>): Guard {
  return {
    name: 'callTenant',
    check(request, response) {
      const tenant = resolveTenant(callerOf(response), tenantParameter(request), tenants);
      return atOnceOrLater(tenant, (known) => {
        response.locals.tenant = known;
      });
    },
  };
}

/** As `callTenant`, but a core caller without `tenantId` is admitted to all tenants: `locals.tenant` stays undefined. */
export function callTenantOrAll(tenants: Pick<Tenants, 'byId'>): Guard {
  const one = callTenant(tenants);
  return {
    name: 'callTenantOrAll',
    check(request, response) {
      const isForAll = !callerOf(response).tenant && tenantParameter(request) === undefined;
      return isForAll ? undefined : one.check(request, response);
    },
  };
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
  if (tenantId === undefined) throw tenantProblem('is required of a core user');
  return tenants.byId(tenantId).then((tenant) => {
    if (!tenant) throw tenantProblem('names no tenant');
    return tenant;
  });
}

function tenantProblem(detail: string): Problem {
  return invalidRequest([{ pointer: '/query/tenantId', detail }]);
}

/** What is known at once is not waited for: nearly every request has a token and a tenant that were met before. */
function atOnceOrLater<T>(value: T | Promise<T>, keep: (known: T) => void): void | Promise<void> {
  return value instanceof Promise ? value.then(keep) : keep(value);
}
