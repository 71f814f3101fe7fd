// The realms of `npm start`: `demo` for the tenant Demo, and `core` for the platform's services.
import type { Urns } from '../../src/service/urn.ts';
import type { RealmClient, RealmDefinition, RealmUser, Roles } from './realm.ts';

/** Client id of the intake application's account in the realm `core`. */
export const applyClientId = 'formgate-apply';

export interface DefaultRealmsOptions {
  urns: Urns;
  /** Returns the client secret of a platform service's account in the realm `core`. */
  serviceSecret(clientId: string): string;
}

export function defaultRealms(options: DefaultRealmsOptions): RealmDefinition[] {
  return [demoRealm(options.urns), coreRealm(options)];
}

function demoRealm(urns: Urns): RealmDefinition {
  const roles = (clients: Record<string, string[]>, realm: string[] = []): Roles => ({
    realm,
    clients: byUrn(urns, clients),
  });
  return {
    name: 'demo',
    registrationToken: 'demo-registration-token',
    audiences: [urns.service('form-service')],
    users: [
      { email: 'admin@example.com', name: 'Ada Admin', password: 'admin', roles: administrator(urns) },
      { email: 'alice@example.com', name: 'Alice Applicant', password: 'alice', roles: { realm: ['applicant'] } },
    ],
    clients: [
      account('demo-intake', 'demo-intake-secret', roles({ 'form-service': ['intake-application'] })),
      account(
        'demo-admin',
        'demo-admin-secret',
        roles({
          'form-service': ['form-admin'],
          'configuration-service': ['configuration-admin'],
          'token-handler': ['token-handler-admin'],
        }),
      ),
      { clientId: 'demo-cli', grants: ['password', 'refresh_token'] },
    ],
  };
}

function coreRealm({ urns, serviceSecret }: DefaultRealmsOptions): RealmDefinition {
  // Platform services accept a token only if its audience contains the called service. A role on a service adds the
  // service to the audience.
  const everyService = {
    'tenant-service': ['platform-service'],
    'configuration-service': ['configured-service'],
    'event-service': ['event-sender'],
  };
  const service = (name: string, more: Record<string, string[]>): RealmClient => {
    const clientId = urns.service(name);
    return account(clientId, serviceSecret(clientId), { clients: byUrn(urns, { ...everyService, ...more }) });
  };
  const people: RealmUser[] = [
    { email: 'core@example.com', name: 'Cory Core', password: 'core', roles: administrator(urns) },
  ];
  return {
    name: 'core',
    users: people,
    clients: [
      service('form-service', {
        'configuration-service': ['configured-service', 'configuration-admin'],
        'notification-service': ['subscription-app', 'subscription-admin'],
      }),
      // The applicant pages use this service account to act as an intake application.
      account(applyClientId, serviceSecret(applyClientId), {
        clients: byUrn(urns, { 'form-service': ['intake-application'], 'file-service': ['file-service-admin'] }),
      }),
      service('token-handler', { 'configuration-service': ['configured-service', 'configuration-admin'] }),
      { clientId: 'demo-cli', grants: ['password', 'refresh_token'] },
    ],
  };
}

/** Returns an administrator's realm roles, and an administrator's roles on the platform services. */
function administrator(urns: Urns): Roles {
  return {
    realm: ['tenant-admin', 'clerk', 'assessor'],
    clients: byUrn(urns, {
      'form-service': ['form-admin'],
      'configuration-service': ['configuration-admin'],
      'token-handler': ['token-handler-admin'],
      'directory-service': ['directory-admin'],
      'notification-service': ['subscription-admin'],
      'event-service': ['event-sender'],
    }),
  };
}

function account(clientId: string, secret: string, roles: Roles): RealmClient {
  return { clientId, secret, grants: ['client_credentials'], roles };
}

function byUrn(urns: Urns, clients: Record<string, string[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(clients).map(([name, roles]) => [urns.service(name), roles]));
}
