// Decides which callers may read or write configuration, and which tenant a call is for. The guards accept tokens for
// any audience. The contract makes this exception only for the configuration service.
import type { Response } from 'express';
import { bearer, role } from '../../service/auth/bearer-guards.ts';
import type { BearerVerifier, Tenant, Tenants } from '../../service/auth/identity.ts';
import type { Guard } from '../../service/http/http-app.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { callerOf } from '../../service/http/request-context.ts';
import { addressLimit, type RateLimit, type RateLimiter } from '../../service/limits/rate-limit.ts';
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
  /** Stores the tenant of the call in `locals.tenant`. Calls for core configuration have no tenant. */
  tenantOrCore: Guard;
  /** Limits reads without a token for each client address. */
  anonymousReadLimit: Guard;
  /** Admits callers without a token if the definition has `anonymousRead`. */
  anonymousRead: Guard;
}

export interface GuardOptions {
  verifier: BearerVerifier;
  tenants: Pick<Tenants, 'byId' | 'byName'>;
  urns: Urns;
  anonymousReads: RateLimiter;
  definitionOf(scope: Scope, namespace: string, name: string): Promise<Definition | undefined>;
}

/** The limit of reads without a token for each client address, the same as for registers. */
export const anonymousReads: RateLimit = { name: 'anonymous-reads', most: 300, window: 60_000 };

const [admin, reader, configured] = ['configuration-admin', 'configuration-reader', 'configured-service'];

export function createConfigurationGuards(options: GuardOptions): ConfigurationGuards {
  const resolver = options.urns.role('directory-service', 'resource-resolver');
  const exporter = options.urns.role('export-service', 'export-job');
  return {
    bearer: bearer(options.verifier, 'any'),
    mayRead: role(reader, admin, configured, resolver, exporter),
    mayPatch: role(admin, configured),
    mayAdminister: role(admin),
    mayList: mayListNamespace(configured, exporter, admin),
    tenantOrCore: createTenantOrCore(options.tenants),
    anonymousReadLimit: addressLimit(options.anonymousReads),
    anonymousRead: {
      name: 'anonymousRead',
      admits: ['none'],
      async check(request, response) {
        const tenant = await anonymousTenant(request.query, options.tenants);
        if (tenant) response.locals.tenant = tenant;
        return requireAnonymousRead(request.params, request.query, tenant, options);
      },
    },
  };
}

/**
 * Admits callers with `configuredRole` or `exporterRole`. Also admits a tenant's administrators, who list only
 * namespaces of their own tenant.
 */
function mayListNamespace(configuredRole: string, exporterRole: string, adminRole: string): Guard {
  return {
    name: `role(${configuredRole}, ${exporterRole}, ${adminRole} unless core)`,
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

/**
 * A core caller may name a tenant with `tenantId`. Without this parameter, the call is for core configuration. Other
 * callers always act for their own tenant, and their `tenantId` is ignored.
 */
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
    // For core configuration, only a definition in core configuration counts. A tenant cannot make core configuration
    // readable.
    const scope = query.core === undefined ? scopeOf(tenant) : coreScope;
    const definition = await options.definitionOf(scope, namespace, name);
    if (definition?.anonymousRead) return;
  }
  throw new Problem('unauthenticated', 'The configuration is not open to anonymous callers.');
}

export function scopeOf(tenant: Tenant | undefined): Scope {
  return tenant ? tenantKey(tenant.id) : coreScope;
}

/** Returns the account under which a change is recorded. */
export function actorOf(response: Response): { id: string; name: string } {
  const { subject, name } = callerOf(response);
  return { id: subject, name };
}
