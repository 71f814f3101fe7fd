// A certified OpenID provider that has none of the optional features: no end-session endpoint, no back-channel logout,
// and no registration unless a test asks for it. Its issuer has a path unlike Keycloak's. It signs everyone in as
// Alice, without a form.
import express from 'express';
import { exportJWK, generateKeyPair } from 'jose';
import type { ClientMetadata } from 'oidc-provider';
import { createAdapterFactory } from '../../dev/access/adapter.ts';
import { loadOidcLibrary } from '../../dev/access/oidc-library.ts';
import { createRealm } from '../../dev/access/realm.ts';
import { systemClock } from '../../src/service/clock.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer, listenOnLoopback } from './loopback-server.ts';
import { createMemoryEntityStore } from './memory-entity-store.ts';

export interface PlainProvider {
  issuer: string;
  /** Requests since the start, as `POST /token`. */
  calls: string[];
  /** Replaces all clients of the provider. */
  setClients(clients: ClientMetadata[]): Promise<void>;
  close(): Promise<void>;
}

const path = '/tenants/town/oidc';

export interface PlainProviderOptions {
  authMethods: ('client_secret_basic' | 'client_secret_post')[];
  /** Seconds for which access tokens are valid. */
  accessTokenLifetime: number;
  /** Initial access token for dynamic registration. The provider issues no registration access tokens (RFC 7592). */
  registrationToken?: string;
}

export async function startPlainProvider(options: PlainProviderOptions): Promise<PlainProvider> {
  const library = await loadOidcLibrary();
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...((await exportJWK(privateKey)) as Record<string, string>), use: 'sig', alg: 'RS256', kid: 'plain' };
  const realm = createRealm({ name: 'plain', users: [], clients: [] });
  const adapter = createAdapterFactory(realm, createMemoryEntityStore(systemClock));
  const calls: string[] = [];
  let routes: express.Router | undefined;
  const app = express();
  app.use(path, (request, response, next) => {
    calls.push(`${request.method} ${request.path}`);
    if (routes) routes(request, response, next);
    else next();
  });
  const server = createHttpServer(app);
  const issuer = `http://127.0.0.1:${await listenOnLoopback(server)}${path}`;

  const provider: PlainProvider = {
    issuer,
    calls,
    async setClients(clients) {
      const oidc = new library.Provider(issuer, {
        clients,
        clientAuthMethods: options.authMethods,
        adapter,
        jwks: { keys: [key] },
        cookies: { keys: ['a key of tests'] },
        claims: { openid: ['sub'], profile: ['name'] },
        conformIdTokenClaims: false,
        ttl: {
          AccessToken: options.accessTokenLifetime,
          ...{ Interaction: 600, Grant: 3_600, Session: 3_600, IdToken: 3_600, RefreshToken: 3_600 },
        },
        issueRefreshToken: async () => true,
        findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, name: 'Alice' }) }),
        loadExistingGrant: async ({
          oidc: {
            client,
            session,
            provider: { Grant },
          },
        }) => {
          const grant = new Grant({ clientId: client?.clientId, accountId: session?.accountId });
          grant.addOIDCScope('openid profile');
          await grant.save();
          return grant;
        },
        interactions: { url: (_context, { uid }) => `${path}/interaction/${uid}` },
        features: {
          devInteractions: { enabled: false },
          rpInitiatedLogout: { enabled: false },
          userinfo: { enabled: false },
          ...(options.registrationToken !== undefined && {
            registration: {
              enabled: true,
              initialAccessToken: options.registrationToken,
              issueRegistrationAccessToken: false,
            },
          }),
        },
      });
      routes = express.Router();
      routes.get('/interaction/:uid', async (request, response) => {
        await oidc.interactionFinished(request, response, { login: { accountId: 'alice' } });
      });
      routes.use(oidc.callback());
    },
    close: () => closeServer(server),
  };
  await provider.setClients([]);
  return provider;
}
