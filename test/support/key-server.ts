// Publishes the keys of realms over real HTTP on loopback. A test can sign any token with these keys, and can withdraw
// a key.
import type { ServerResponse } from 'node:http';
import {
  exportJWK,
  type GenerateKeyPairResult,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';
import { createHttpServer } from './http-server.ts';
import { closeServer, listenOnLoopback } from './loopback-server.ts';

export interface RealmKey extends GenerateKeyPairResult {
  kid: string;
  alg: string;
  /** The public key as it is published. */
  jwk: JWK;
}

export interface KeyServer {
  /** URL of the server: `http://127.0.0.1:<port>/auth`. */
  url: string;
  issuer(realm: string): string;
  /** Paths requested so far. */
  asked: string[];
  /** Creates a key and publishes it for the realm. */
  addKey(realm: string, alg?: string): Promise<RealmKey>;
  /** Publishes exactly these keys for the realm. */
  publish(realm: string, keys: JWK[]): void;
  publishedFor(realm: string): JWK[];
  /**
   * Holds back the responses to requests for the keys of a realm from now on, until the returned function is called.
   */
  hold(realm: string): () => void;
  /** How the key endpoint treats requests, for every realm. */
  mode: KeyServerMode;
  close(): Promise<void>;
}

export type KeyServerMode = 'up' | keyof typeof faults;

/** Ways in which the key endpoint fails, keyed by name. */
export const faults = {
  failing: (response: ServerResponse) => response.writeHead(500).end('down'),
  garbage: (response: ServerResponse) => response.writeHead(200).end('<html>'),
  'hanging up': (response: ServerResponse) => response.destroy(),
  empty: (response: ServerResponse) => sendJson(response, { keys: [] }),
  'without keys': (response: ServerResponse) => sendJson(response, {}),
  null: (response: ServerResponse) => sendJson(response, null),
  'with unusable keys': (response: ServerResponse) =>
    sendJson(response, { keys: [null, 7, { kty: 'RSA' }, { kty: 'oct', k: 'AAAA' }, { kty: 'EC', crv: 'P-1' }, {}] }),
  redirecting: (response: ServerResponse) => response.writeHead(302, { Location: '/elsewhere' }).end(),
  'cut off': (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Length': 1_000 }).write('{"keys": [');
    setImmediate(() => response.destroy());
  },
  huge: (response: ServerResponse) => sendJson(response, { keys: [], padding: 'x'.repeat(300_000) }),
};

function sendJson(response: ServerResponse, document: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(document));
}

export async function startKeyServer(): Promise<KeyServer> {
  const published = new Map<string, JWK[]>();
  const asked: string[] = [];
  const held = new Map<string, Promise<void>>();
  let made = 0;
  const server = createHttpServer(async (request, response) => {
    asked.push(request.url ?? '');
    if (keyServer.mode !== 'up') return void faults[keyServer.mode](response);
    const realm = /^\/auth\/realms\/([^/]+)\/protocol\/openid-connect\/certs$/.exec(request.url ?? '')?.[1] ?? '';
    await held.get(realm);
    const keys = published.get(realm);
    if (keys) sendJson(response, { keys });
    else response.writeHead(404).end();
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}/auth`;
  const keyServer: KeyServer = {
    url,
    asked,
    mode: 'up',
    issuer: (realm) => `${url}/realms/${realm}`,
    async addKey(realm, alg = 'RS256') {
      made += 1;
      const pair = await generateKeyPair(alg, { extractable: true });
      const kid = `key-${made}`;
      const jwk = { ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' };
      published.set(realm, [...(published.get(realm) ?? []), jwk]);
      return { ...pair, kid, alg, jwk };
    },
    publishedFor: (realm) => published.get(realm) ?? [],
    publish: (realm, keys) => void published.set(realm, keys),
    hold(realm) {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(realm, promise);
      return () => {
        if (held.get(realm) === promise) held.delete(realm);
        resolve();
      };
    },
    close: () => closeServer(server),
  };
  return keyServer;
}

/** Signs claims without checking them. */
export function signToken(
  key: RealmKey,
  claims: JWTPayload,
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })
    .sign(key.privateKey);
}
