// Finds the tenant that a request names: by the header, which a proxy sets to keep a domain to one tenant, or else by the
// query. The header wins, so that a link cannot lead to another tenant.
import type { IncomingMessage } from 'node:http';
import type { Tenant, Tenants } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Session } from './session.ts';

export type TenantLookup = Pick<Tenants, 'byId' | 'byName'>;

/** By full URN, or by name in any case or in kebab-case. */
export function findTenant(tenants: TenantLookup, text: string): Promise<Tenant | undefined> {
  return text.startsWith('urn:') ? tenants.byId(text) : tenants.byName(text);
}

/** `header`: its name. Undefined if the request has none. */
export function tenantHeader(request: IncomingMessage, header: string): string | undefined {
  const value = request.headers[header.toLowerCase()];
  return (Array.isArray(value) ? value.join(', ') : value)?.trim() || undefined;
}

/** Throws Problem `unauthenticated` when the request's header names another tenant than the session's. */
export async function checkSessionTenant(
  request: IncomingMessage,
  session: Pick<Session, 'tenantId'>,
  { tenants, header }: { tenants: TenantLookup; header: string },
): Promise<void> {
  const named = tenantHeader(request, header);
  if (named === undefined || named === session.tenantId) return;
  const tenant = await findTenant(tenants, named);
  if (tenant?.id !== session.tenantId) throw new Problem('unauthenticated', 'The session is of another tenant.');
}
