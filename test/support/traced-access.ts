// A real identity provider that lists its registered clients, so that a test can find leftovers of registrations.
import type { EntityStore } from '../../dev/access/entity-store.ts';
import { systemClock } from '../../src/service/clock.ts';
import { startTestAccess, type TestAccess } from './access.ts';
import { createMemoryEntityStore } from './memory-entity-store.ts';

export interface TracedAccess extends TestAccess {
  /** Returns the ids of the clients that are registered and not deleted. */
  registeredClients(): string[];
  /** Deletes a registered client of the realm `demo`, as its administrator would in the console. */
  removeClient(clientId: string): Promise<void>;
  /** Returns the name with which a client of the realm `demo` registered. */
  clientName(clientId: string): Promise<string | undefined>;
  /** True if the token endpoint of the realm `demo` accepts this client's secret. */
  accepts(clientId: string, secret: string): Promise<boolean>;
}

export async function startTracedAccess(): Promise<TracedAccess> {
  const clients = new Set<string>();
  const store = traceClients(createMemoryEntityStore(systemClock), clients);
  const access = await startTestAccess({ store });
  await access.addRealm('other');
  return {
    ...access,
    registeredClients: () => [...clients],
    removeClient: (id) => store.remove({ realm: 'demo', kind: 'Client', id }),
    async clientName(id) {
      const name = (await store.find({ realm: 'demo', kind: 'Client', id }))?.client_name;
      return typeof name === 'string' ? name : undefined;
    },
    async accepts(clientId, secret) {
      const credentials = Buffer.from(`${clientId}:${secret}`).toString('base64');
      const { status } = await fetch(`${access.issuer('demo')}/protocol/openid-connect/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${credentials}` },
        body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'nonsense' }),
      });
      // 400 rejects the refresh token; 401 would reject the client.
      return status === 400;
    },
  };
}

function traceClients(store: EntityStore, clients: Set<string>): EntityStore {
  return {
    ...store,
    async save(key, payload, lifetime) {
      await store.save(key, payload, lifetime);
      if (key.kind === 'Client') clients.add(key.id);
    },
    async remove(key) {
      await store.remove(key);
      if (key.kind === 'Client') clients.delete(key.id);
    },
  };
}
