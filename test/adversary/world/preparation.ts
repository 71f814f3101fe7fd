// Prepares both tenants before the attacks: tokens of their applications and administrators, a form definition, and a
// registered client with targets.
import type { TestAccess } from '../../support/access.ts';
import { permit } from '../../support/forms.ts';
import { call, roleToken } from '../../support/platform.ts';
import type { Addresses } from './addresses.ts';
import { callbackOf, clientId } from './sign-in.ts';

export const definitionId = permit.id;

const tenYears = 10 * 365 * 24 * 3600;
const administratorRoles = {
  'form-service': ['form-admin'],
  'configuration-service': ['configuration-admin'],
  'token-handler': ['token-handler-admin'],
  'notification-service': ['subscription-admin'],
  'event-service': ['event-sender'],
};

export async function createTokens(access: TestAccess): Promise<Addresses['tokens']> {
  const exp = Math.floor(Date.now() / 1000) + tenYears;
  const token = (realm: string, sub: string, roles: Record<string, string[]>) =>
    roleToken(access, roles, { realm, claims: { sub, exp, name: sub } });
  const intake = { 'form-service': ['intake-application'] };
  return {
    intake: await token('demo', 'intake', intake),
    administrator: await token('demo', 'administrator', administratorRoles),
    hostileIntake: await token('other', 'hostile intake', intake),
    hostileAdministrator: await token('other', 'hostile administrator', administratorRoles),
  };
}

interface Prepared {
  access: TestAccess;
  fronts: Addresses['fronts'];
  tenants: Addresses['tenants'];
}

export async function configureTenants({ access, fronts, tenants }: Prepared): Promise<void> {
  const service = await roleToken(access, { 'configuration-service': ['configured-service'] });
  const site = fronts['token-handler'];
  const targets = ['api', 'hostile', 'stuck', 'dead'].map((id) => ({ id, upstream: `urn:example:demo:${id}` }));
  const client = { redirectUris: [callbackOf(site)], targets };
  /** Writes a tenant's configuration, or the core configuration if `tenantId` is undefined. */
  const configure = async (name: string, configuration: object, tenantId?: string) => {
    const url = new URL(`${fronts['platform-server']}/configuration/v2/configuration/platform/${name}`);
    if (tenantId !== undefined) url.searchParams.set('tenantId', tenantId);
    const body = { operation: 'REPLACE', configuration };
    const { status, text } = await call(url.href, { method: 'PATCH', token: service, body });
    if (status !== 200) throw new Error(`The configuration ${name} was not written: ${status} ${text}`);
  };
  // Writes the core configuration, which exists on every real platform.
  await configure('token-handler', { clients: {} });
  for (const tenant of Object.values(tenants)) {
    await configure('form-service', { [definitionId]: permit }, tenant.id);
    await configure('token-handler', { clients: { [clientId]: client } }, tenant.id);
    await registerClient(access, site, tenant.realm);
  }
}

async function registerClient(access: TestAccess, site: string, realm: string): Promise<void> {
  const token = await roleToken(access, { 'token-handler': ['token-handler-admin'] }, { realm });
  const { status, text } = await call(`${site}/token-handler/v1/clients/${clientId}`, {
    method: 'POST',
    token,
    body: { registrationToken: await access.registrationToken(realm) },
  });
  if (status !== 200) throw new Error(`The client was not registered: ${status} ${text}`);
}
