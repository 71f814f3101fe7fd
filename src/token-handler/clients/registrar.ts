// Registers clients and changes their redirect URIs, at the identity provider and in the store. If a step fails, either
// the old or the new registration still works. Any client that may remain at the identity provider is recorded.
import type { Caller, Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { Client } from './client.ts';
import { clientMetadata } from './client-metadata.ts';
import type { LeftoverClients } from './leftover-clients.ts';
import type { ChangeOutcome, ProviderRegistration, RegisterOutcome } from './provider-registration.ts';
import { type Management, type Registration, registeredEvent, type StoredRegistration } from './registration.ts';
import type { Owner, RegistrationStore } from './registration-store.ts';

export interface Registrar {
  /**
   * Registers a client at the identity provider, and replaces its earlier registration. Throws Problem, such as
   * `conflict` if the tenant may register no further client. This limit does not apply to core clients, whose number
   * the operator chooses.
   */
  register(request: RegisterRequest): Promise<void>;
  /** Replaces the redirect URIs of a client. Throws Problem `registration-required` if the client is not registered. */
  update(request: { tenant: Tenant; client: Client; redirectUris: string[] }): Promise<void>;
}

export interface RegisterRequest {
  tenant: Tenant;
  client: Client;
  /** A token that permits creating clients in the tenant's realm. It is never stored. */
  registrationToken: string;
  authCallbackUrl?: string | undefined;
  by: Pick<Caller, 'subject' | 'name'>;
}

export interface RegistrarOptions {
  store: RegistrationStore;
  leftovers: LeftoverClients;
  provider: ProviderRegistration;
  background: BackgroundTasks;
  /** Base URL at which the identity provider reaches the token handler. */
  publicUrl: string | undefined;
  /** Returns the issuer that the operator has mapped to the tenant of this realm, if there is one. */
  mappedIssuer(realm: string): string | undefined;
  clock: Clock;
  log: Logger;
  /** Called after a commit that created a deletion or an event to process. */
  changed(): void;
}

export function createRegistrar(options: RegistrarOptions): Registrar {
  const { store, provider, background, publicUrl, clock } = options;
  return {
    async register(request) {
      const { tenant, client, authCallbackUrl, registrationToken } = request;
      const redirectUris = [...new Set([...client.redirectUris, ...(authCallbackUrl ? [authCallbackUrl] : [])])];
      const issuer = options.mappedIssuer(tenant.realm) ?? null;
      const owner = { tenantId: tenant.id, clientId: client.id, realm: tenant.realm, issuer };
      // Records the attempt first, which also proves that the database accepts writes. Otherwise, the identity provider
      // might create a client that could then not be stored.
      const { id, clientName } = await store.begin({ ...owner, started: clock(), isLimited: !client.core });
      const metadata = clientMetadata(client, { name: clientName, redirectUris }, publicUrl);
      const outcome = await provider.register(tenant.realm, metadata, registrationToken);
      if (outcome.kind !== 'registered') {
        await settleAttempt(options, owner, id, outcome);
        throw registrationProblem(outcome);
      }
      const authentication = 'client_secret_basic' as const;
      const issued = { ...outcome.client, clientName, authentication, redirectUris, registeredAt: clock() };
      await keep(options, { ...owner, ...issued }, id, request);
      options.changed();
      await deleteLeftovers(options, owner, registrationToken);
    },

    async update({ tenant, client, redirectUris }) {
      let unsaved: StoredRegistration | undefined;
      try {
        const outcome = await store.change(tenant.id, client.id, async (present) => {
          const managed = requireManaged(present, tenant);
          const name = managed.clientName ?? client.id;
          const result = await provider.change(managed, clientMetadata(client, { name, redirectUris }, publicUrl));
          unsaved = 'client' in result ? result.client : undefined;
          return { result, changed: result.kind === 'lost' ? { ...managed, management: 'lost' } : unsaved };
        });
        unsaved = undefined;
        refuseUnlessChanged(outcome);
      } catch (error) {
        const lost = unsaved;
        const about = { task: 'store registration access token', client: client.id, tenant: tenant.id };
        // The identity provider has replaced the registration access token. Without the new token, the token handler
        // could no longer change or delete the client.
        if (lost) background.untilDone(about, () => store.save(lost));
        throw error;
      }
    },
  };
}

/**
 * Removes the stored attempt. If the attempt may have created a client, records it as failed instead. Ignores errors:
 * the attempt then stays stored, and upkeep later records it as a leftover, even if it created no client.
 */
async function settleAttempt(options: RegistrarOptions, owner: Owner, attemptId: string, outcome: RegisterOutcome) {
  const { store, changed } = options;
  const mayExist = outcome.kind === 'failed' && outcome.mayExist;
  await (mayExist ? store.giveUp(attemptId, owner) : store.forget(attemptId, owner)).catch(() => undefined);
  if (mayExist) changed();
}

/**
 * Deletes leftovers of earlier attempts if the token permits it. In Keycloak, an administrator's token permits
 * deletion, but an initial access token does not. Refusals are therefore common, and a refused leftover stays recorded.
 * Never throws.
 */
async function deleteLeftovers(options: RegistrarOptions, owner: Owner, token: string): Promise<void> {
  const { leftovers, provider, log } = options;
  const { realm, issuer } = owner;
  const found = await leftovers.deletable(owner).catch(() => []);
  for (const { id, oidcClientId, registrationClientUri } of found) {
    const about = { tenant: owner.tenantId, client: owner.clientId, oidcClientId };
    try {
      const outcome = await provider.remove({ realm, issuer, registrationAccessToken: token, registrationClientUri });
      if (outcome === 'refused') continue;
      await leftovers.forget(id);
      log.info(about, 'leftover client deleted at the identity provider');
    } catch (error) {
      log.info({ ...about, err: error }, 'leftover client not deleted');
      return;
    }
  }
}

const unmanaged: Record<Exclude<Management, 'kept'>, string> = {
  lost: 'The token that manages this registration was lost. People can sign in; to change the client, register it again.',
  unsupported:
    'The identity provider issued no token to manage this client (RFC 7592). Change it at the identity provider, or register it again.',
  provided: 'An administrator provided this client, so it is only changed at the identity provider.',
};

/**
 * Throws Problem `registration-required` if the client is not registered in the tenant's present realm, or if its
 * registration access token was lost or never issued. Throws `conflict` for a provided client, which can be changed
 * only at the identity provider.
 */
function requireManaged(present: StoredRegistration | undefined, { realm }: Tenant): StoredRegistration {
  if (present?.realm !== realm) throw new Problem('registration-required', 'The client is not registered.');
  if (present.management === 'kept') return present;
  const slug = present.management === 'provided' ? 'conflict' : 'registration-required';
  throw new Problem(slug, unmanaged[present.management]);
}

async function keep(
  { store, background, clock, changed }: RegistrarOptions,
  registration: Registration,
  attemptId: string,
  { client, authCallbackUrl, by }: RegisterRequest,
): Promise<void> {
  const { clientId, tenantId, oidcClientId } = registration;
  const event = registeredEvent(client, { clientId: oidcClientId, authCallbackUrl }, by);
  try {
    await store.replace(registration, attemptId, event);
  } catch (error) {
    // If nothing was committed, the earlier registration stays in use. If only the response to the commit was lost, the
    // new registration is in use, and `discard` does nothing.
    background.untilDone(
      { task: 'discard unused client', client: clientId, tenant: tenantId, oidcClientId },
      async () => {
        await store.discard(registration, attemptId, clock());
        changed();
      },
    );
    throw error;
  }
}

function refuseUnlessChanged(outcome: ChangeOutcome): void {
  if (outcome.kind === 'changed') return;
  if (outcome.kind === 'lost') throw new Problem('registration-required', unmanaged.lost);
  if (outcome.kind === 'gone')
    throw new Problem('registration-required', 'The identity provider does not know this client. Register it again.');
  if (outcome.kind === 'refused') throw refusedField('/redirectUris', 'are not accepted', outcome.code);
  throw new Problem('dependency-failed', 'The identity provider failed to change the registration.');
}

function registrationProblem(outcome: Exclude<RegisterOutcome, { kind: 'registered' }>): Problem {
  if (outcome.kind === 'failed') {
    const { cause } = outcome;
    return new Problem('dependency-failed', 'The identity provider failed to register the client.', { cause });
  }
  if (outcome.kind === 'unsupported')
    return invalidRequest([
      {
        pointer: '/registrationToken',
        detail: 'cannot be used: the identity provider has no dynamic registration; send clientId and clientSecret',
      },
    ]);
  if (outcome.kind === 'token-refused') return refusedField('/registrationToken', 'is not accepted', outcome.code);
  return refusedField('', 'the registration is refused', outcome.code);
}

function refusedField(pointer: string, what: string, code: string | undefined): Problem {
  const suffix = code === undefined ? '' : ` (${code})`;
  return invalidRequest([{ pointer, detail: `${what} by the identity provider${suffix}` }]);
}
