// Decides what callers may do with registers. Administrators of forms or of configuration manage them. Other callers
// may only read the entries of open registers.
import { bearer, callTenant, role } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Caller, Tenants } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { addressLimit, type RateLimiter } from '../../service/limits/rate-limit.ts';
import type { Urns } from '../../service/urn.ts';

export interface RegisterPolicyOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId'>;
  urns: Urns;
  /** Limits reads without a token, per client address. */
  anonymousReads: RateLimiter;
}

export type RegisterGuards = ReturnType<typeof createRegisterGuards>;

export function createRegisterGuards({ urns, verifier, tenants, anonymousReads }: RegisterPolicyOptions) {
  /** Resolves the tenant from the query `tenantId`, for calls without a token. */
  const namedTenant: Guard = {
    name: 'namedTenant',
    async check(request, response) {
      const { tenantId } = request.query;
      const named = typeof tenantId === 'string' ? await tenants.byId(tenantId) : undefined;
      if (!named) throw refuseRead(undefined);
      response.locals.tenant = named;
    },
  };
  return {
    /** Also accepts tokens for the configuration service: a caller with only configuration-admin has no other token. */
    bearer: bearer(verifier, [urns.service('form-service'), urns.service('configuration-service')]),
    mayManage: role(...managerRoles(urns)),
    isManager: (caller: Caller) => isManager(caller, urns),
    tenant: callTenant(tenants),
    anonymousReadLimit: addressLimit(anonymousReads),
    namedTenant,
  };
}

/** Keeps caches from serving one caller's response, including a refusal, to another caller. */
export const varyByCaller: Guard = {
  name: 'varyByCaller',
  check: (_request, response) => void response.vary('Accept, Authorization'),
};

const managerRoles = (urns: Urns) => ['form-admin', urns.role('configuration-service', 'configuration-admin')];

/** True if the caller may read all registers of its tenant, including those that are not open. */
export function isManager(caller: Caller | undefined, urns: Urns): boolean {
  return caller !== undefined && managerRoles(urns).some((role) => caller.roles.has(role));
}

/**
 * The same refusal for a closed register, a missing one and a missing tenant, so that callers cannot distinguish them.
 */
export function refuseRead(caller: Caller | undefined): Problem {
  if (caller) return new Problem('forbidden', 'The register is not open to callers without a role.');
  return new Problem('unauthenticated', 'The register is not open to callers without a token.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}
