// Registers clients and changes their redirect URIs: the access service and the store brought together, so that at every
// step either the old or the new registration works.

import type { Caller, Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { type AccessRegistration, AccessRegistrationError, type ChangeOutcome } from './access-registration.ts';
import type { Client } from './client.ts';
import type { Persistence } from './persistence.ts';
import { clientMetadata, type Registration } from './registration.ts';
import type { StoredRegistration } from './registration-row.ts';
import type { RegistrationStore } from './registration-store.ts';

export interface Registrar {
  /** Registers a client, in place of an earlier registration. Throws Problem. */
  register(request: RegisterRequest): Promise<void>;
  /** Replaces the redirect URIs of the registered client. Throws Problem, `registration-required` where there is none. */
  update(request: { tenant: Tenant; client: Client; redirectUris: string[] }): Promise<void>;
}

export interface RegisterRequest {
  tenant: Tenant;
  client: Client;
  /** An initial access token of the tenant's realm. Used once, never kept. */
  registrationToken: string;
  authCallbackUrl: string | undefined;
  by: Pick<Caller, 'subject' | 'name'>;
}

export interface RegistrarOptions {
  store: RegistrationStore;
  access: AccessRegistration;
  persistence: Persistence;
  /** Base URL under which the access service reaches this service. */
  publicUrl: string | undefined;
  clock: Clock;
  /** Called after a commit that left something to be done: a deletion, an event. */
  changed(): void;
}

export const clientRegistered = 'client-registered';

export function createRegistrar(options: RegistrarOptions): Registrar {
  return {
    async register(request) {
      const { tenant, client, authCallbackUrl } = request;
      const { store, clock } = options;
      const redirectUris = [...new Set([...client.redirectUris, ...(authCallbackUrl ? [authCallbackUrl] : [])])];
      const place = { tenantId: tenant.id, clientId: client.id, realm: tenant.realm };
      // Written first, so that the database is known to work just before a client is made that only it can remember.
      const attemptId = await store.begin({ ...place, started: clock() });
      const registered = await registerAtAccess(options, request, redirectUris, attemptId);
      const registration: Registration = { ...place, ...registered, redirectUris, registeredAt: clock() };
      await keep(options, registration, attemptId, request);
      options.changed();
    },

    async update({ tenant, client, redirectUris }) {
      const { store, access, persistence, publicUrl } = options;
      let unsaved: StoredRegistration | undefined;
      try {
        const outcome = await store.change(tenant.id, client.id, async (present) => {
          if (!present) throw registrationRequired('The client is not registered.');
          const outcome = await access.change(present, clientMetadata(client, redirectUris, publicUrl));
          unsaved = changedRegistration(present, outcome, redirectUris);
          return { result: outcome, changed: unsaved };
        });
        unsaved = undefined;
        refuseUnlessChanged(outcome);
      } catch (error) {
        const lost = unsaved;
        const about = { matter: 'registration access token', client: client.id, tenant: tenant.id };
        // The access service has replaced the token: what was not stored would be out of reach for ever.
        if (lost) persistence.untilDone(about, () => store.save(lost));
        throw error;
      }
    },
  };
}

async function registerAtAccess(
  { store, access, publicUrl }: RegistrarOptions,
  { tenant, client, registrationToken }: RegisterRequest,
  redirectUris: string[],
  attemptId: string,
) {
  try {
    return await access.register(tenant.realm, clientMetadata(client, redirectUris, publicUrl), registrationToken);
  } catch (error) {
    if (!(error instanceof AccessRegistrationError)) throw error;
    // A note that cannot be removed says no more than that something may be there.
    if (!error.mayExist) await store.forget(attemptId).catch(() => undefined);
    throw registrationProblem(error);
  }
}

async function keep(
  { store, persistence, clock, changed }: RegistrarOptions,
  registration: Registration,
  attemptId: string,
  { client, authCallbackUrl, by }: RegisterRequest,
): Promise<void> {
  const payload = {
    client: {
      id: client.id,
      name: client.name,
      clientId: registration.oidcClientId,
      ...(authCallbackUrl !== undefined && { authCallbackUrl }),
    },
    registeredBy: { id: by.subject, name: by.name },
  };
  try {
    await store.replace(registration, attemptId, { name: clientRegistered, payload });
  } catch (error) {
    const { clientId, tenantId, oidcClientId } = registration;
    // The earlier registration stays in use; or the new one, if the commit happened and only its answer was lost.
    persistence.untilDone({ matter: 'unused client', client: clientId, tenant: tenantId, oidcClientId }, async () => {
      await store.discard(registration, attemptId, clock());
      changed();
    });
    throw error;
  }
}

function changedRegistration(
  present: StoredRegistration,
  outcome: ChangeOutcome,
  redirectUris: string[],
): StoredRegistration | undefined {
  if (outcome.kind === 'changed') return { ...present, ...outcome.changed, ...identityOf(present), redirectUris };
  if (outcome.kind === 'failed' && outcome.changed) return { ...present, ...outcome.changed, ...identityOf(present) };
  return undefined;
}

/** What no answer changes. */
function identityOf({ oidcClientId }: Registration): Pick<Registration, 'oidcClientId'> {
  return { oidcClientId };
}

function refuseUnlessChanged(outcome: ChangeOutcome): void {
  if (outcome.kind === 'changed') return;
  if (outcome.kind === 'lost')
    throw registrationRequired(
      'The access service does not let this registration be changed; register the client again.',
    );
  if (outcome.kind === 'refused')
    throw invalidRequest([{ pointer: '/redirectUris', detail: refusal('are not accepted', outcome.code) }]);
  throw new Problem('dependency-failed', 'The access service failed to change the registration.');
}

function registrationRequired(detail: string): Problem {
  return new Problem('registration-required', detail);
}

function registrationProblem(error: AccessRegistrationError): Problem {
  const { kind, code, cause } = error;
  if (kind === 'token-refused')
    return invalidRequest([{ pointer: '/registrationToken', detail: refusal('is not accepted', code) }]);
  if (kind === 'refused')
    return invalidRequest([{ pointer: '', detail: refusal('the registration is refused', code) }]);
  return new Problem('dependency-failed', 'The access service failed to register the client.', { cause });
}

function refusal(what: string, code: string | undefined): string {
  return `${what} by the access service${code === undefined ? '' : ` (${code})`}`;
}
