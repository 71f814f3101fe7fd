// Decides what callers may do with registers. Administrators of forms or of configuration manage them. Other callers
// may only read the entries of registers that are open to anonymous reads.
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
  /** Limits reads without a token for each client address. */
  anonymousReads: RateLimiter;
}

export type RegisterGuards = ReturnType<typeof createRegisterGuards>;

export function createRegisterGuards({ urns, verifier, tenants, anonymousReads }: RegisterPolicyOptions) {
  const managers = ['form-admin', urns.role('configuration-service', 'configuration-admin')];
  /** Finds the tenant by the query parameter `tenantId`, for calls without a token. */
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
    /**
     * Also accepts tokens for the configuration service, because a caller whose only role is configuration-admin has no
     * other token.
     */
    bearer: bearer(verifier, [urns.service('form-service'), urns.service('configuration-service')]),
    mayManage: role(...managers),
    /** True if the caller may read all registers of the tenant, including those that are not open. */
    isManager: (caller: Caller | undefined) => caller !== undefined && managers.some((name) => caller.roles.has(name)),
    tenant: callTenant(tenants),
    anonymousReadLimit: addressLimit(anonymousReads),
    namedTenant,
  };
}

/** Adds the header Vary, so that caches do not serve one caller's response or refusal to another caller. */
export const varyByCaller: Guard = {
  name: 'varyByCaller',
  check: (_request, response) => void response.vary('Accept, Authorization'),
};

/**
 * Returns the same refusal for a closed register, a missing register and a missing tenant, so that callers cannot tell
 * which is the case.
 */
export function refuseRead(caller: Caller | undefined): Problem {
  if (caller) return new Problem('forbidden', 'The register is not open to callers without a role.');
  return new Problem('unauthenticated', 'The register is not open to callers without a token.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}
