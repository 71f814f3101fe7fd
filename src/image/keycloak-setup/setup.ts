// Creates the realms, clients and roles that Formgate needs in Keycloak, as docs/keycloak.md describes.
import { randomBytes } from 'node:crypto';
import { createUrns, type Urns } from '../../service/urn.ts';
import type { AdminApi } from './admin-api.ts';
import type { SetupCommand } from './arguments.ts';
import { type ClientRoles, Realm } from './realm.ts';

export type SetupOptions = Pick<
  SetupCommand,
  'urnPrefix' | 'apply' | 'operator' | 'tenants' | 'admin' | 'intake' | 'script' | 'tester' | 'registrations'
>;

export interface SetupReport {
  /** Receives a line for each object that was missing and has been created. */
  progress(line: string): void;
  /** Receives each client secret, password and token. A password is kept before Keycloak gets it. */
  keep(name: string, value: string): void;
}

/** Throws SetupError if Keycloak cannot be reached or responds with an error. */
export async function setUpKeycloak(api: AdminApi, options: SetupOptions, report: SetupReport): Promise<void> {
  const urns = createUrns(options.urnPrefix);
  const all = { ...options, ...report, urns };
  await setUpCore(api, all);
  for (const tenant of options.tenants) await setUpTenant(api, tenant, all);
}

async function setUpCore(api: AdminApi, { urns, apply, operator, progress, keep }: RealmOptions): Promise<void> {
  const realm = new Realm(api, 'core', reporter('core', progress));
  await realm.ensure();
  await realm.roleClients(serviceRoles(urns));
  const common = {
    [urns.service('tenant-service')]: ['platform-service'],
    [urns.service('configuration-service')]: ['configured-service', 'configuration-admin'],
    [urns.service('event-service')]: ['event-sender'],
  };
  const notifications = { [urns.service('notification-service')]: ['subscription-app', 'subscription-admin'] };
  keep('forms', await realm.serviceAccount(urns.service('form-service'), { ...common, ...notifications }));
  keep('token-handler', await realm.serviceAccount(urns.service('token-handler'), common));
  if (apply !== undefined) keep('apply', await realm.serviceAccount(apply, intakeRoles(urns)));
  if (operator !== undefined) {
    const { [urns.service('configuration-service')]: _ofTenants, ...roles } = administratorRoles(urns);
    keep('operator', await realm.serviceAccount(operator, roles));
  }
}

interface RealmOptions extends SetupOptions, SetupReport {
  urns: Urns;
}

async function setUpTenant(api: AdminApi, tenant: string, options: RealmOptions): Promise<void> {
  const { urns, progress, admin, intake, script, tester, registrations } = options;
  const realm = new Realm(api, tenant, reporter(tenant, progress));
  const { [urns.service('tenant-service')]: _core, ...roles } = serviceRoles(urns);
  await realm.ensure();
  await realm.roleClients(roles);
  const called = ['form-service', 'configuration-service', 'token-handler'].map(urns.service);
  await realm.audiences('formgate-audiences', called);
  const keep = (name: string, value: string) => options.keep(`${tenant}.${name}`, value);
  if (intake !== undefined) keep('intake', await realm.serviceAccount(intake, intakeRoles(urns)));
  if (script !== undefined) keep('script', await realm.serviceAccount(script, administratorRoles(urns)));
  if (admin !== undefined) {
    const password = newPassword();
    const person = { email: admin, password, isTemporary: true };
    await realm.person(person, administratorRoles(urns), () => keep('admin-password', password));
  }
  if (tester !== undefined) {
    const password = newPassword();
    await realm.person({ email: tester, password, isTemporary: false }, {}, () => {
      keep('tester', tester);
      keep('tester-password', password);
    });
  }
  if (registrations > 0) keep('registration-token', await realm.registrationToken(registrations));
}

const newPassword = () => randomBytes(15).toString('base64url');

const reporter = (realm: string, progress: (line: string) => void) => (what: string) =>
  progress(`${realm}: created ${what}`);

const intakeRoles = (urns: Urns): ClientRoles => ({ [urns.service('form-service')]: ['intake-application'] });

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
