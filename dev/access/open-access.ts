// Runs the embedded identity provider of `npm start` with the default realms, and keeps its state in Postgres. Services
// reach the identity provider on a separate loopback port; browsers reach it through the gateway.
import { join } from 'node:path';
import type express from 'express';
import { systemClock } from '../../src/service/clock.ts';
import { createLogger } from '../../src/service/operations/log.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import { migrate } from '../../src/service/postgres/migrate.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';
import type { Urns } from '../../src/service/urn.ts';
import { listen } from '../listen.ts';
import { type AccessService, createAccessService } from './access.ts';
import { applyClientId, defaultRealms } from './default-realms.ts';
import { createPostgresEntityStore } from './postgres-entity-store.ts';

export interface RunningAccess {
  app: express.Express;
  /** Address of the identity provider for the services: `http://127.0.0.1:<port>/auth`. */
  url: string;
  /** Resolves to true if the identity provider's database is reachable. */
  isReady(): Promise<boolean>;
  /** Requests an access token for a client's service account. */
  token(realm: string, clientId: string): Promise<string>;
  close(): Promise<void>;
}

export interface AccessOptions {
  databaseUrl: string;
  /** Public URL of the identity provider; ends in `/auth`. */
  publicUrl: string;
  cookieKey: string;
  urns: Urns;
  /** Returns the client secret of a platform service's account in the realm `core`. */
  serviceSecret(clientId: string): Promise<string>;
  /** Lifetime of access tokens in seconds; see `RealmDefinition`. */
  accessTokenLifetime?: number;
}

const cleaningInterval = 10 * 60_000;

export async function openAccess(options: AccessOptions): Promise<RunningAccess> {
  const log = createLogger({ name: 'access', level: 'error' });
  await migrate({ url: options.databaseUrl, directory: join(import.meta.dirname, 'migrations'), log });
  const pool = createPool({ url: options.databaseUrl, size: 5, log, metrics: createMetrics() });
  const store = createPostgresEntityStore(pool, systemClock);
  const service = await createAccessService({ publicUrl: options.publicUrl, store, cookieKeys: [options.cookieKey] });
  const listening = await listen(service.app);
  const url = `http://127.0.0.1:${listening.port}/auth`;
  await addDefaultRealms(service.addRealm, options);
  const cleaning = setInterval(() => void store.removeExpired().catch(() => undefined), cleaningInterval).unref();
  return {
    app: service.app,
    url,
    isReady: () =>
      pool.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    token: async (realm, clientId) => {
      const client_secret = service.realm(realm)?.client(clientId)?.secret ?? '';
      const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: clientId, client_secret });
      const response = await fetch(`${url}/realms/${realm}/protocol/openid-connect/token`, { method: 'POST', body });
      const tokens: { access_token?: string } = JSON.parse(await response.text());
      if (tokens.access_token === undefined)
        throw new Error(`The identity provider issued no token to ${clientId}: HTTP ${response.status}.`);
      return tokens.access_token;
    },
    close: async () => {
      clearInterval(cleaning);
      await listening.close();
      await pool.end();
    },
  };
}

async function addDefaultRealms(
  addRealm: AccessService['addRealm'],
  { urns, serviceSecret, accessTokenLifetime }: AccessOptions,
): Promise<void> {
  const secrets = new Map<string, string>();
  for (const clientId of [urns.service('form-service'), urns.service('token-handler'), applyClientId])
    secrets.set(clientId, await serviceSecret(clientId));
  const secretOf = (clientId: string) => {
    const secret = secrets.get(clientId);
    if (secret === undefined) throw new Error(`The secret of ${clientId} is missing.`);
    return secret;
  };
  const realms = defaultRealms({ urns, serviceSecret: secretOf });
  await Promise.all(
    realms.map((realm) => addRealm({ ...realm, ...(accessTokenLifetime !== undefined && { accessTokenLifetime }) })),
  );
}
