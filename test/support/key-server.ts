// Publishes the keys of realms over real HTTP on loopback. A test can sign any token with them, and withdraw them.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  exportJWK,
  type GenerateKeyPairResult,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';

export interface RealmKey extends GenerateKeyPairResult {
  kid: string;
  alg: string;
}

export interface KeyServer {
  /** `http://127.0.0.1:<port>/auth` */
  url: string;
  issuer(realm: string): string;
  /** Paths requested so far. */
  asked: string[];
  /** Creates a key and publishes it for the realm. */
  addKey(realm: string, alg?: string): Promise<RealmKey>;
  /** Publishes exactly these keys for the realm. */
  publish(realm: string, keys: JWK[]): void;
  /** What the endpoint does: respond, fail with 500, respond with HTML, or close the connection. */
  mode: 'up' | 'failing' | 'garbage' | 'hanging up';
  close(): Promise<void>;
}

export async function startKeyServer(): Promise<KeyServer> {
  const published = new Map<string, JWK[]>();
  const asked: string[] = [];
  let made = 0;
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (keyServer.mode === 'hanging up') return void request.socket.destroy();
    if (keyServer.mode === 'failing') return void response.writeHead(500).end('down');
    if (keyServer.mode === 'garbage') return void response.writeHead(200).end('<html>');
    const realm = /^\/auth\/realms\/([^/]+)\/protocol\/openid-connect\/certs$/.exec(request.url ?? '')?.[1] ?? '';
    const keys = published.get(realm);
    if (!keys) return void response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth`;
  const keyServer: KeyServer = {
    url,
    asked,
    mode: 'up',
    issuer: (realm) => `${url}/realms/${realm}`,
    async addKey(realm, alg = 'RS256') {
      made += 1;
      const pair = await generateKeyPair(alg, { extractable: true });
      const key = { ...pair, kid: `key-${made}`, alg };
      const jwk = { ...(await exportJWK(pair.publicKey)), kid: key.kid, alg, use: 'sig' };
      published.set(realm, [...(published.get(realm) ?? []), jwk]);
      return key;
    },
    publish: (realm, keys) => void published.set(realm, keys),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
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
