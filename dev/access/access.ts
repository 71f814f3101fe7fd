// The embedded identity provider, with one OpenID provider per realm under /auth/realms/<realm>, as in Keycloak. It is
// for trials and tests only; a cluster uses a real identity provider.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { exportJWK, generateKeyPair, importJWK, type JWK, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { EntityStore } from './entity-store.ts';
import { loadOidcLibrary } from './oidc-library.ts';
import { createProvider } from './provider.ts';
import { createRealm, profileClaims, type Realm, type RealmDefinition } from './realm.ts';
import { createSignInRoutes } from './sign-in.ts';

export interface AccessService {
  /** Express app that handles all requests below `/auth/`. */
  app: express.Express;
  /** Adds the realm, or replaces the realm with the same name. */
  addRealm(definition: RealmDefinition): Promise<Realm>;
  realm(name: string): Realm | undefined;
  /** Signs the claims with the realm's key. */
  sign(realm: string, claims: JWTPayload): Promise<string>;
}

interface RunningRealm {
  realm: Realm;
  routes: express.Router;
  key: JWK;
}

/**
 * Creates the identity provider. `publicUrl` ends in `/auth`. The issuer of a realm is `<publicUrl>/realms/<realm>`.
 */
export async function createAccessService(options: {
  publicUrl: string;
  store: EntityStore;
  cookieKeys: string[];
}): Promise<AccessService> {
  const library = await loadOidcLibrary();
  const realms = new Map<string, RunningRealm>();
  const app = express();
  app.disable('x-powered-by');
  app.use('/auth/realms/:realm', (req, res, next) => {
    const found = realms.get(req.params.realm);
    if (found) found.routes(req, res, next);
    else res.status(404).json({ error: 'Realm does not exist' });
  });
  return {
    app,
    addRealm: async (definition) => {
      const realm = createRealm(definition);
      const key = await options.store.signingKey(definition.name, createSigningKey);
      const issuer = `${options.publicUrl}/realms/${definition.name}`;
      realms.set(definition.name, {
        realm,
        key,
        routes: createRoutes({ ...options, library, realm, issuer, signingKey: key }),
      });
      return realm;
    },
    realm: (name) => realms.get(name)?.realm,
    sign: async (name, claims) => {
      const found = realms.get(name);
      if (!found) throw new Error(`The realm ${name} does not exist.`);
      return new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: found.key.kid ?? '' })
        .sign(await importJWK(found.key, 'RS256'));
    },
  };
}

function createRoutes(options: Parameters<typeof createProvider>[0]): express.Router {
  const provider = createProvider(options);
  const router = express.Router();
  router.all('/protocol/openid-connect/userinfo', (req, res) => sendUserinfo(options, req, res));
  router.use(createSignInRoutes(provider, options.realm));
  router.use(provider.callback());
  return router;
}

/**
 * Replaces the library's userinfo endpoint, which rejects access tokens that are bound to a resource (RFC 8707). All
 * access tokens of this provider are bound to a resource.
 */
async function sendUserinfo(
  { realm, issuer, signingKey }: { realm: Realm; issuer: string; signingKey: JWK },
  req: express.Request,
  res: express.Response,
): Promise<void> {
  const [, token] = /^Bearer (\S+)$/i.exec(req.get('Authorization') ?? '') ?? [];
  const verified = await verifyToken(token ?? '', issuer, signingKey);
  const account = realm.account(verified?.sub ?? '');
  if (!account) {
    res.status(401).set('WWW-Authenticate', 'Bearer error="invalid_token"').json({ error: 'invalid_token' });
    return;
  }
  res.json({ sub: account.id, ...profileClaims(account) });
}

async function verifyToken(token: string, issuer: string, key: JWK): Promise<JWTPayload | undefined> {
  const { kty, n, e } = key;
  if (kty !== 'RSA' || n === undefined || e === undefined) return undefined;
  const verified = await jwtVerify(token, await importJWK({ kty, n, e }, 'RS256'), {
    issuer,
    algorithms: ['RS256'],
  }).catch(() => undefined);
  return verified?.payload;
}

async function createSigningKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { modulusLength: 2048, extractable: true });
  return { ...(await exportJWK(privateKey)), kid: randomUUID(), use: 'sig', alg: 'RS256' };
}
