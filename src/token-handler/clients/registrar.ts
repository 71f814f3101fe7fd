// Registers clients and changes their redirect URIs, at the identity provider and in the store. If a step fails, either
// the old or the new registration works.
import type { Caller, Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import type { Client } from './client.ts';
import { clientMetadata } from './client-metadata.ts';
import type { ChangeOutcome, ProviderRegistration, RegisterOutcome } from './provider-registration.ts';
import type { Registration, StoredRegistration } from './registration.ts';
import type { RegistrationStore } from './registration-store.ts';

export interface Registrar {
  /** Registers a client and replaces its earlier registration. Throws Problem. */
  register(request: RegisterRequest): Promise<void>;
  /** Replaces the redirect URIs of a client. Throws Problem `registration-required` if the client is not registered. */
  update(request: { tenant: Tenant; client: Client; redirectUris: string[] }): Promise<void>;
}

export interface RegisterRequest {
  tenant: Tenant;
  client: Client;
  /** An initial access token of the tenant's realm. Used once and not stored. */
  registrationToken: string;
  authCallbackUrl?: string | undefined;
  by: Pick<Caller, 'subject' | 'name'>;
}

export interface RegistrarOptions {
  store: RegistrationStore;
  provider: ProviderRegistration;
  background: BackgroundTasks;
  /** Base URL at which the identity provider reaches this service. */
  publicUrl: string | undefined;
  clock: Clock;
  /** Called after a commit that left a deletion or an event to be processed. */
  changed(): void;
}

export const clientRegistered = 'client-registered';

export function createRegistrar(options: RegistrarOptions): Registrar {
  const { store, provider, background, publicUrl, clock } = options;
  return {
    async register(request) {
      const { tenant, client, authCallbackUrl } = request;
      const redirectUris = [...new Set([...client.redirectUris, ...(authCallbackUrl ? [authCallbackUrl] : [])])];
      const owner = { tenantId: tenant.id, clientId: client.id, realm: tenant.realm };
      // Also ensures that the database accepts writes, because a new client that cannot be stored is lost.
      const attemptId = await store.begin({ ...owner, started: clock() });
      const metadata = clientMetadata(client, redirectUris, publicUrl);
      const outcome = await provider.register(tenant.realm, metadata, request.registrationToken);
      if (outcome.kind !== 'registered') {
        // If the attempt cannot be removed, the only consequence is an unnecessary log line.
        if (outcome.kind !== 'failed' || !outcome.mayExist) await store.forget(attemptId).catch(() => undefined);
        throw registrationProblem(outcome);
      }
      await keep(options, { ...owner, ...outcome.client, redirectUris, registeredAt: clock() }, attemptId, request);
      options.changed();
    },

    async update({ tenant, client, redirectUris }) {
      let unsaved: StoredRegistration | undefined;
      try {
        const outcome = await store.change(tenant.id, client.id, async (present) => {
          if (!present) throw new Problem('registration-required', 'The client is not registered.');
          const result = await provider.change(present, clientMetadata(client, redirectUris, publicUrl));
          unsaved = 'client' in result ? result.client : undefined;
          return { result, changed: unsaved };
        });
        unsaved = undefined;
        refuseUnlessChanged(outcome);
      } catch (error) {
        const lost = unsaved;
        const about = { task: 'store registration access token', client: client.id, tenant: tenant.id };
        // The identity provider has replaced the token. Unless the new token is stored, the client cannot be managed.
        if (lost) background.untilDone(about, () => store.save(lost));
        throw error;
      }
    },
  };
}

async function keep(
  { store, background, clock, changed }: RegistrarOptions,
  registration: Registration,
  attemptId: string,
  { client, authCallbackUrl, by }: RegisterRequest,
): Promise<void> {
  const { clientId, tenantId, oidcClientId } = registration;
  const { id, name } = client;
  const payload = {
    client: { id, name, clientId: oidcClientId, ...(authCallbackUrl !== undefined && { authCallbackUrl }) },
    registeredBy: { id: by.subject, name: by.name },
  };
  try {
    await store.replace(registration, attemptId, { name: clientRegistered, payload });
  } catch (error) {
    // The earlier registration remains in use, unless the commit succeeded and only its result was lost.
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
  if (outcome.kind === 'lost') {
    const detail = 'The identity provider no longer lets this registration be changed. Register the client again.';
    throw new Problem('registration-required', detail);
  }
  if (outcome.kind === 'refused') throw refusedField('/redirectUris', 'are not accepted', outcome.code);
  throw new Problem('dependency-failed', 'The identity provider failed to change the registration.');
}

function registrationProblem(outcome: Exclude<RegisterOutcome, { kind: 'registered' }>): Problem {
  if (outcome.kind === 'failed') {
    const { cause } = outcome;
    return new Problem('dependency-failed', 'The identity provider failed to register the client.', { cause });
  }
  if (outcome.kind === 'token-refused') return refusedField('/registrationToken', 'is not accepted', outcome.code);
  return refusedField('', 'the registration is refused', outcome.code);
}

function refusedField(pointer: string, what: string, code: string | undefined): Problem {
  const suffix = code === undefined ? '' : ` (${code})`;
  return invalidRequest([{ pointer, detail: `${what} by the identity provider${suffix}` }]);
}
