// Who may see which tenants: core sees all, a tenant's users their own; an anonymous caller has to know what to ask for.
import { bearer } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Caller } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantKey } from '../tenant-key.ts';

/** A bearer; or nobody, who must then give `name` or `realm`. */
export function bearerOrNamed(verifier: BearerVerifier, audience: string): Guard {
  const verified = bearer(verifier, [audience]);
  return {
    name: 'bearerOrNamed',
    admits: ['bearer', 'none'],
    async check(request, response) {
      if (request.headers.authorization !== undefined) return verified.check(request, response);
      if (request.query.name || request.query.realm) return;
      throw new Problem('unauthenticated', 'Without a token, a name or a realm has to be given.', {
        headers: { 'WWW-Authenticate': 'Bearer' },
      });
    },
  };
}

/** The id of the only tenant that the caller may see, undefined where it may see all. */
export function onlyVisibleTenant(caller: Caller | undefined): string | undefined {
  return caller?.tenant && tenantKey(caller.tenant.id);
}
