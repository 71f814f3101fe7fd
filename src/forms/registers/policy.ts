// Who may do what with registers: administrators of forms or of configuration manage them; without a token one may read
// the entries of registers that are open, and nothing else.
import { anyRole, bearer, callTenant } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Caller, Tenants } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { addressLimit, type RateLimiter } from '../../service/limits/rate-limit.ts';
import type { Urns } from '../../service/urn.ts';

export interface RegisterPolicyOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId'>;
  urns: Urns;
  /** This service's client id, if it is not its URN. */
  clientId?: string | undefined;
  /** Reads without a token, of an address. */
  anonymousReads: RateLimiter;
}

export interface RegisterGuards {
  /** A bearer with only the configuration-admin role has only the configuration service as its audience. */
  bearer: Guard;
  mayManage: Guard;
  tenant: Guard;
  /** A bearer and its tenant; without a token, the tenant that the query names, counted against the address. */
  bearerOrAnonymousRead: Guard;
}

export function createRegisterGuards({ urns, verifier, tenants, ...options }: RegisterPolicyOptions): RegisterGuards {
  const ownClient = options.clientId ?? urns.service('form-service');
  const verified = bearer(verifier, [ownClient, urns.service('configuration-service')]);
  const tenant = callTenant(tenants);
  const readLimit = addressLimit(options.anonymousReads);
  return {
    bearer: verified,
    mayManage: anyRole(...managerRoles(urns)),
    tenant,
    bearerOrAnonymousRead: {
      name: 'bearerOrAnonymousRead',
      admits: ['bearer', 'none'],
      async check(request, response) {
        // Whatever the answer is, another one stands behind the same address with another of these.
        response.vary('Accept, Authorization');
        if (request.headers.authorization !== undefined) {
          await verified.check(request, response);
          await tenant.check(request, response);
          return;
        }
        await readLimit.check(request, response);
        const { tenantId } = request.query;
        const named = typeof tenantId === 'string' ? await tenants.byId(tenantId) : undefined;
        if (!named) throw refuseRead(undefined);
        response.locals.tenant = named;
      },
    },
  };
}

const managerRoles = (urns: Urns) => ['form-admin', urns.role('configuration-service', 'configuration-admin')];

/** Whether the caller may read any register of its tenant, open or not. */
export function isManager(caller: Caller | undefined, urns: Urns): boolean {
  return caller !== undefined && managerRoles(urns).some((role) => caller.roles.has(role));
}

/** The same for a register that is not open, or does not exist, or is of a tenant that does not exist. */
export function refuseRead(caller: Caller | undefined): Problem {
  if (caller) return new Problem('forbidden', 'The register is not open to callers without a role.');
  return new Problem('unauthenticated', 'The register is not open to callers without a token.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}
