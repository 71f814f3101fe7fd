// Who may do what with configuration, and whose configuration a call is about. Tokens are taken with any audience here:
// the contract makes that exception for this service, and for no other.
import { anyRole, bearer } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Tenant, Tenants } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';
import type { Urns } from '../../service/urn.ts';
import { tenantKey } from '../tenant-key.ts';
import { coreScope, type Scope } from './configuration.ts';
import type { Definition } from './definition.ts';

export interface ConfigurationGuards {
  bearer: Guard;
  mayRead: Guard;
  mayPatch: Guard;
  mayAdminister: Guard;
  mayList: Guard;
  /** Leaves the tenant of the call in `locals.tenant`; none means core configuration. */
  tenantOrCore: Guard;
  /** A bearer that may read, or nobody at all where the definition has `anonymousRead`. */
  mayReadOrAnonymousRead: Guard;
}

export interface GuardOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId' | 'byName'>;
  urns: Urns;
  definitionOf(scope: Scope, namespace: string, name: string): Promise<Definition | undefined>;
}

const [admin, reader, configured] = ['configuration-admin', 'configuration-reader', 'configured-service'];

export function createConfigurationGuards(options: GuardOptions): ConfigurationGuards {
  const resolver = options.urns.role('directory-service', 'resource-resolver');
  const exporter = options.urns.role('export-service', 'export-job');
  const verified = bearer(options.verifier, 'any');
  const mayRead = anyRole(reader, admin, configured, resolver, exporter);
  const tenantOrCore = createTenantOrCore(options.tenants);
  return {
    bearer: verified,
    mayRead,
    mayPatch: anyRole(admin, configured),
    mayAdminister: anyRole(admin),
    mayList: mayListNamespace(configured, exporter, admin),
    tenantOrCore,
    mayReadOrAnonymousRead: {
      name: 'mayReadOrAnonymousRead',
      admits: ['bearer', 'none'],
      async check(request, response) {
        if (request.headers.authorization === undefined) {
          const tenant = await anonymousTenant(request.query, options.tenants);
          if (tenant) response.locals.tenant = tenant;
          return requireAnonymousRead(request.params, request.query, tenant, options);
        }
        for (const guard of [verified, mayRead, tenantOrCore]) await guard.check(request, response);
      },
    },
  };
}

/** Administrators list their own tenant's namespaces; a core caller needs a service's role. */
function mayListNamespace(configuredRole: string, exporterRole: string, adminRole: string): Guard {
  return {
    name: `anyRole(${configuredRole}, ${exporterRole}, ${adminRole} unless core)`,
    check(_request, response) {
      const { roles, isCore } = callerOf(response);
      if (roles.has(configuredRole) || roles.has(exporterRole) || (!isCore && roles.has(adminRole))) return;
      throw new Problem(
        'forbidden',
        `This operation requires the role ${configuredRole} or ${exporterRole}, or for a tenant's caller ${adminRole}.`,
      );
    },
  };
}

/** A core caller names a tenant with `tenantId`, or addresses core; what others send there is ignored. */
function createTenantOrCore(tenants: Pick<Tenants, 'byId'>): Guard {
  return {
    name: 'tenantOrCore',
    async check(request, response) {
      const caller = callerOf(response);
      const named = request.query.tenantId;
      if (caller.tenant) response.locals.tenant = caller.tenant;
      else if (named !== undefined) response.locals.tenant = await namedTenant(named, tenants);
    },
  };
}

async function namedTenant(named: unknown, tenants: Pick<Tenants, 'byId'>): Promise<Tenant> {
  const tenant = typeof named === 'string' ? await tenants.byId(named) : undefined;
  if (!tenant) throw invalidRequest([{ pointer: '/query/tenantId', detail: 'names no tenant' }]);
  return tenant;
}

async function anonymousTenant(query: Record<string, unknown>, tenants: Pick<Tenants, 'byId' | 'byName'>) {
  const named = query.tenant ?? query.tenantId;
  if (typeof named !== 'string') return undefined;
  return (await tenants.byId(named)) ?? (await tenants.byName(named));
}

async function requireAnonymousRead(
  params: Record<string, string | string[] | undefined>,
  query: Record<string, unknown>,
  tenant: Tenant | undefined,
  options: GuardOptions,
): Promise<void> {
  const { namespace, name } = params;
  if (tenant && typeof namespace === 'string' && typeof name === 'string') {
    // What a tenant defines opens nothing of core's.
    const scope = query.core === undefined ? scopeOf(tenant) : coreScope;
    const definition = await options.definitionOf(scope, namespace, name);
    if (definition?.anonymousRead) return;
  }
  throw new Problem('unauthenticated', 'The configuration is not open to anonymous callers.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}

export function scopeOf(tenant: Tenant | undefined): Scope {
  return tenant ? tenantKey(tenant.id) : coreScope;
}
