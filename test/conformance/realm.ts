// A realm of the scripted OpenID provider. Without a script, the realm behaves correctly. A script makes it misbehave
// as one module of the conformance suite does. The realm records which rules a relying party breaks.
import { createHash, randomUUID } from 'node:crypto';
import {
  exportJWK,
  type GenerateKeyPairResult,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose';

interface RealmKey extends GenerateKeyPairResult {
  kid: string;
  alg: string;
}

/** How the realm differs from a correct one. */
export interface Script {
  /** Members of the discovery document that replace the realm's own. */
  discovery?: Record<string, unknown>;
  /**
   * Claims of an ID token that replace the realm's own. The value undefined removes a claim. A function receives the
   * correct claims, and returns the claims to replace.
   */
  claims?: Record<string, unknown> | ((correct: JWTPayload) => Record<string, unknown>);
  /** Members of the ID token's header that replace the realm's own. */
  header?: Record<string, unknown>;
  /** Changes the finished ID token. */
  alter?: (token: string, claims: JWTPayload) => string | Promise<string>;
  /** Status of the response with the realm's public keys; by default 200. */
  keysStatus?: number;
  /** Runs before an ID token is signed. */
  beforeSigning?: () => Promise<void>;
  /** Claims of a logout token that replace the realm's own. */
  logoutClaims?: Record<string, unknown>;
  /** Signs a logout token. By default, the realm's key signs it. */
  signLogout?: (claims: JWTPayload) => string | Promise<string>;
}

export interface IssuedCode {
  clientId: string;
  redirectUri: string;
  nonce: string | undefined;
  challenge: string;
}

interface RegisteredClient {
  client_id: string;
  client_secret: string;
  redirect_uris: string[];
  post_logout_redirect_uris?: string[];
  backchannel_logout_uri?: string;
}

export class ScriptedRealm {
  readonly issuer: string;
  readonly subject = randomUUID();
  /** Id of the realm's only session. All sign-ins to the realm belong to it. */
  readonly sid = randomUUID();
  /** The key that signs tokens. */
  key: RealmKey;
  published: JWK[] = [];
  jwksPath = 'certs';
  script: Script = {};
  /** Names of the endpoints that were called, in order. */
  readonly calls: string[] = [];
  /** Rules that the relying party broke. */
  readonly violations: string[] = [];
  /** The relying party's responses to back-channel logout requests. */
  readonly logoutAnswers: { status: number; cacheControl: string | null }[] = [];
  readonly clients = new Map<string, RegisteredClient>();
  readonly codes = new Map<string, IssuedCode>();

  private constructor(issuer: string, key: RealmKey) {
    this.issuer = issuer;
    this.key = key;
  }

  static async create(issuer: string, key: RealmKey): Promise<ScriptedRealm> {
    const realm = new ScriptedRealm(issuer, key);
    await realm.publish([key]);
    return realm;
  }

  /** Publishes exactly these keys. Each of `members` replaces a member of every key. */
  async publish(keys: RealmKey[], members: Record<string, unknown> = {}): Promise<void> {
    this.published = await Promise.all(keys.map(async (key) => ({ ...(await publicJwk(key)), ...members })));
  }

  /** Replaces the realm's key with a new one, and publishes only the new key. */
  async rotate(): Promise<void> {
    this.key = await makeKey('RS256');
    await this.publish([this.key]);
  }

  expect(condition: unknown, rule: string): void {
    if (!condition) this.violations.push(rule);
  }

  discovery(): Record<string, unknown> {
    const base = `${this.issuer}/protocol/openid-connect`;
    return {
      issuer: this.issuer,
      authorization_endpoint: `${base}/auth`,
      token_endpoint: `${base}/token`,
      userinfo_endpoint: `${base}/userinfo`,
      jwks_uri: `${base}/${this.jwksPath}`,
      end_session_endpoint: `${base}/logout`,
      registration_endpoint: `${this.issuer}/clients-registrations/openid-connect`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256', 'ES256', 'none'],
      token_endpoint_auth_methods_supported: ['client_secret_basic'],
      code_challenge_methods_supported: ['S256'],
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
      ...this.script.discovery,
    };
  }

  register(metadata: Omit<RegisteredClient, 'client_id' | 'client_secret'>): Record<string, unknown> {
    const client = { ...metadata, client_id: randomUUID(), client_secret: `secret of ${randomUUID()}` };
    this.clients.set(client.client_id, client);
    const uri = `${this.issuer}/clients-registrations/openid-connect/${client.client_id}`;
    const management = { registration_access_token: randomUUID(), registration_client_uri: uri };
    return { ...client, client_secret_expires_at: 0, ...management };
  }

  async tokens(code: string, { clientId, nonce }: IssuedCode): Promise<Record<string, unknown>> {
    await this.script.beforeSigning?.();
    const accessToken = randomUUID();
    const correct: JWTPayload = {
      ...{ ...this.times(300), iss: this.issuer, sub: this.subject, aud: clientId, sid: this.sid, nonce },
      ...{ at_hash: leftHalf(accessToken), c_hash: leftHalf(code), auth_time: this.times(0).iat },
    };
    const { claims: changes } = this.script;
    const claims: JWTPayload = { ...correct, ...(typeof changes === 'function' ? changes(correct) : changes) };
    const token = await signToken(this.key, claims, this.script.header);
    const idToken = (await this.script.alter?.(token, claims)) ?? token;
    return { access_token: accessToken, token_type: 'Bearer', expires_in: 300, id_token: idToken };
  }

  logoutToken(clientId: string): Promise<string> | string {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const claims: JWTPayload = {
      ...{ ...this.times(120), iss: this.issuer, sub: this.subject, aud: clientId, sid: this.sid, jti: randomUUID() },
      ...{ events, ignored_claim: 'claims that are not understood must be ignored' },
      ...this.script.logoutClaims,
    };
    return this.script.signLogout?.(claims) ?? signToken(this.key, claims, { typ: 'logout+jwt' });
  }

  times(lifetime: number): { iat: number; exp: number } {
    const now = Math.floor(Date.now() / 1_000);
    return { iat: now, exp: now + lifetime };
  }
}

export async function makeKey(alg: string): Promise<RealmKey> {
  return { ...(await generateKeyPair(alg, { extractable: true })), kid: randomUUID(), alg };
}

async function publicJwk({ publicKey, kid, alg }: RealmKey): Promise<JWK> {
  return { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
}

/** Signs claims without checking them. */
export function signToken({ kid, alg, privateKey }: RealmKey, claims: JWTPayload, header = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid, typ: 'JWT', ...header }).sign(privateKey);
}

export function unsigned(claims: JWTPayload): string {
  return new UnsecuredJWT(claims).encode();
}

/** Returns the left half of the SHA-256 hash in base64url (OpenID Connect Core 1.0, section 3.1.3.6, for RS256). */
export function leftHalf(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url');
}
