// An OpenID provider over HTTP. Each realm with a script misbehaves as the script says; requests for other realms are
// forwarded to a real provider. The provider validates the requests of the relying party as the conformance suite does.
import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import { listen } from '../../dev/listen.ts';
import { makeKey, ScriptedRealm } from './realm.ts';

export interface ScriptedProvider {
  /** URL of the provider: `http://127.0.0.1:<port>/auth`. */
  url: string;
  addRealm(name: string): Promise<ScriptedRealm>;
  /** Returns the URL with this provider's origin. */
  own(url: URL): URL;
  close(): Promise<void>;
}

interface Call {
  realm: ScriptedRealm;
  url: URL;
  form: URLSearchParams;
  body: string;
  authorization: string | undefined;
}

interface Answer {
  status?: number;
  json?: unknown;
  location?: string;
}

/** `publicUrl` is the address of the real provider. The issuers of the scripted realms begin with it. */
export async function startScriptedProvider(publicUrl: string): Promise<ScriptedProvider> {
  const realms = new Map<string, ScriptedRealm>();
  const origin = new URL(publicUrl).origin;
  // All realms begin with the same key, because generating a key takes longer than everything else that a module does.
  const key = await makeKey('RS256');
  const listening = await listen((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  const url = `http://127.0.0.1:${listening.port}`;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const requested = new URL(request.url ?? '/', url);
    const [, name = '', path = ''] = /^\/auth\/realms\/([^/]+)\/(.*)$/.exec(requested.pathname) ?? [];
    const realm = realms.get(name);
    if (!realm) return forward(origin, request, response, body);
    const text = body.toString('utf8');
    const call = { realm, url: requested, form: new URLSearchParams(text), body: text };
    const answer = await answerTo(path, { ...call, authorization: request.headers.authorization });
    const { status = 200, json, location } = answer;
    if (location !== undefined) response.writeHead(302, { location }).end();
    else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json ?? {}));
  }

  return {
    url: `${url}/auth`,
    async addRealm(name) {
      const realm = await ScriptedRealm.create(`${publicUrl}/realms/${name}`, key);
      realms.set(name, realm);
      return realm;
    },
    own: ({ pathname, search }) => new URL(`${pathname}${search}`, url),
    close: () => listening.close(),
  };
}

async function answerTo(path: string, call: Call): Promise<Answer> {
  const { realm } = call;
  const endpoint = path.replace('protocol/openid-connect/', '');
  realm.calls.push(endpoint);
  if (endpoint === '.well-known/openid-configuration') return { json: realm.discovery() };
  if (endpoint === realm.jwksPath) return { status: realm.script.keysStatus ?? 200, json: { keys: realm.published } };
  if (endpoint === 'clients-registrations/openid-connect')
    return { status: 201, json: realm.register(JSON.parse(call.body)) };
  if (endpoint === 'auth') return authorize(call);
  if (endpoint === 'token') return redeem(call);
  if (endpoint === 'logout') return endSession(call);
  return { status: 404 };
}

/** Signs the person in without a form (OpenID Connect Core 1.0, section 3.1.2). */
function authorize({ realm, url }: Call): Answer {
  const query = Object.fromEntries(url.searchParams);
  const { client_id: clientId = '', redirect_uri: redirectUri = '', nonce, code_challenge: challenge = '' } = query;
  realm.expect(query.response_type === 'code', 'response_type is code');
  realm.expect(query.scope?.split(' ').includes('openid'), 'scope contains openid');
  realm.expect(realm.clients.get(clientId)?.redirect_uris.includes(redirectUri), 'redirect_uri is registered');
  realm.expect(nonce !== undefined && /^[\x21-\x7e]{1,255}$/.test(nonce), 'nonce has at most 255 visible characters');
  realm.expect(query.code_challenge_method === 'S256', 'PKCE uses S256');
  realm.expect(!('request' in query) && !('request_uri' in query), 'the request is a plain one');
  const code = randomUUID();
  realm.codes.set(code, { clientId, redirectUri, nonce, challenge });
  const location = new URL(redirectUri);
  location.searchParams.set('code', code);
  location.searchParams.set('state', query.state ?? '');
  return { location: location.href };
}

/** Redeems a code (RFC 6749, sections 2.3.1 and 4.1.3; RFC 7636, section 4.6). */
async function redeem({ realm, form, authorization = '' }: Call): Promise<Answer> {
  const code = form.get('code') ?? '';
  const issued = realm.codes.get(code);
  realm.codes.delete(code);
  const [id = '', secret = ''] = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString().split(':');
  const isKnown = realm.clients.get(decodeForm(id))?.client_secret === decodeForm(secret);
  realm.expect(authorization.startsWith('Basic ') && isKnown, 'the client authenticates with client_secret_basic');
  realm.expect(!form.has('client_secret'), 'the secret is not in the form');
  if (!issued || !isKnown) return { status: 400, json: { error: 'invalid_grant' } };
  const verifier = form.get('code_verifier') ?? '';
  realm.expect(createHash('sha256').update(verifier).digest('base64url') === issued.challenge, 'PKCE verifier fits');
  realm.expect(form.get('redirect_uri') === issued.redirectUri, 'redirect_uri is the same as at sign-in');
  return { json: await realm.tokens(code, issued) };
}

/** Decodes a client id or secret, which are form-encoded (RFC 6749, section 2.3.1). */
function decodeForm(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

/**
 * Ends the session (RP-Initiated Logout 1.0). Sends a back-channel logout request to the client of the ID token before
 * it responds.
 */
async function endSession({ realm, url }: Call): Promise<Answer> {
  const hint = url.searchParams.get('id_token_hint') ?? '';
  const returnTo = url.searchParams.get('post_logout_redirect_uri') ?? '';
  const clientId = String(decodeJwt(hint).aud);
  const client = realm.clients.get(clientId);
  const keys = createLocalJWKSet({ keys: realm.published });
  const isOwn = await jwtVerify(hint, keys, { issuer: realm.issuer, audience: clientId }).then(
    () => true,
    () => false,
  );
  realm.expect(isOwn, 'id_token_hint is an ID token of this provider');
  realm.expect(client?.post_logout_redirect_uris?.includes(returnTo), 'post_logout_redirect_uri is registered');
  if (client?.backchannel_logout_uri !== undefined) {
    const body = new URLSearchParams({ logout_token: await realm.logoutToken(clientId) });
    const { status, headers } = await fetch(client.backchannel_logout_uri, { method: 'POST', body });
    realm.logoutAnswers.push({ status, cacheControl: headers.get('cache-control') });
  }
  return { location: returnTo };
}

async function forward(origin: string, request: IncomingMessage, response: ServerResponse, body: Buffer) {
  const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers;
  const { method = 'GET' } = request;
  const answer = await fetch(`${origin}${request.url}`, {
    method,
    headers: headers as Record<string, string>,
    redirect: 'manual',
    body: method === 'GET' || method === 'HEAD' ? null : body,
  });
  const contentType = answer.headers.get('content-type');
  response.writeHead(answer.status, contentType === null ? {} : { 'content-type': contentType });
  response.end(Buffer.from(await answer.arrayBuffer()));
}
