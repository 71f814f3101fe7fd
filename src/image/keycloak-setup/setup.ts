// Creates the realms, clients and roles that Formgate needs in Keycloak, as docs/keycloak.md describes.
import { randomBytes } from 'node:crypto';
import { createUrns, type Urns } from '../../service/urn.ts';
import type { AdminApi } from './admin-api.ts';
import type { SetupCommand } from './arguments.ts';
import { type ClientRoles, Realm } from './realm.ts';

export type SetupOptions = Pick<
  SetupCommand,
  'urnPrefix' | 'tenants' | 'admin' | 'intake' | 'script' | 'tester' | 'registrations'
>;

/** Client secrets, passwords and tokens. Each key becomes a key of the Kubernetes Secret that the command writes. */
export type SetupSecrets = Record<string, string>;

/** `progress` receives a line for each object that was missing and has been created. Throws SetupError. */
export async function setUpKeycloak(
  api: AdminApi,
  options: SetupOptions,
  progress: (line: string) => void,
): Promise<SetupSecrets> {
  const urns = createUrns(options.urnPrefix);
  const secrets = await setUpCore(api, urns, progress);
  for (const tenant of options.tenants)
    Object.assign(secrets, await setUpTenant(api, tenant, { ...options, urns, progress }));
  return secrets;
}

async function setUpCore(api: AdminApi, urns: Urns, progress: (line: string) => void): Promise<SetupSecrets> {
  const realm = new Realm(api, 'core', reporter('core', progress));
  await realm.ensure();
  await realm.roleClients(serviceRoles(urns));
  const common = {
    [urns.service('tenant-service')]: ['platform-service'],
    [urns.service('configuration-service')]: ['configured-service', 'configuration-admin'],
    [urns.service('event-service')]: ['event-sender'],
  };
  const notifications = { [urns.service('notification-service')]: ['subscription-app', 'subscription-admin'] };
  const forms = await realm.serviceAccount(urns.service('form-service'), { ...common, ...notifications });
  return { forms, 'token-handler': await realm.serviceAccount(urns.service('token-handler'), common) };
}

interface TenantOptions extends SetupOptions {
  urns: Urns;
  progress(line: string): void;
}

async function setUpTenant(api: AdminApi, tenant: string, options: TenantOptions): Promise<SetupSecrets> {
  const { urns, progress, admin, intake, script, tester, registrations } = options;
  const realm = new Realm(api, tenant, reporter(tenant, progress));
  const { [urns.service('tenant-service')]: _core, ...roles } = serviceRoles(urns);
  await realm.ensure();
  await realm.roleClients(roles);
  const called = ['form-service', 'configuration-service', 'token-handler'].map(urns.service);
  await realm.audiences('formgate-audiences', called);
  const secrets: SetupSecrets = {};
  if (intake !== undefined)
    secrets[`${tenant}.intake`] = await realm.serviceAccount(intake, {
      [urns.service('form-service')]: ['intake-application'],
    });
  if (script !== undefined) secrets[`${tenant}.script`] = await realm.serviceAccount(script, administratorRoles(urns));
  if (admin !== undefined) {
    const password = newPassword();
    const isNew = await realm.person({ email: admin, password, isTemporary: true }, administratorRoles(urns));
    if (isNew) secrets[`${tenant}.admin-password`] = password;
  }
  if (tester !== undefined) {
    const password = newPassword();
    const isNew = await realm.person({ email: tester, password, isTemporary: false }, {});
    if (isNew) Object.assign(secrets, { [`${tenant}.tester`]: tester, [`${tenant}.tester-password`]: password });
  }
  if (registrations > 0) secrets[`${tenant}.registration-token`] = await realm.registrationToken(registrations);
  return secrets;
}

const newPassword = () => randomBytes(15).toString('base64url');

const reporter = (realm: string, progress: (line: string) => void) => (what: string) =>
  progress(`${realm}: created ${what}`);

function administratorRoles(urns: Urns): ClientRoles {
  return {
    [urns.service('form-service')]: ['form-admin'],
    [urns.service('configuration-service')]: ['configuration-admin'],
    [urns.service('token-handler')]: ['token-handler-admin'],
  };
}

function serviceRoles(urns: Urns): ClientRoles {
  return {
    [urns.service('token-handler')]: ['token-handler-admin'],
    [urns.service('form-service')]: ['form-admin', 'intake-application'],
    [urns.service('configuration-service')]: ['configuration-admin', 'configured-service'],
    [urns.service('tenant-service')]: ['platform-service'],
    [urns.service('event-service')]: ['event-sender'],
    [urns.service('notification-service')]: ['subscription-app', 'subscription-admin'],
  };
}
