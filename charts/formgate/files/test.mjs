// `helm test`: asks the services whether they reach what they need, and sends requests to the release through its
// ingress, or to its Services if it has no ingress. With a person's name and password it also signs in, and calls a
// target.
import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const question = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { url, host, insecure, signIn, register, access, issuers = [], direct } = question;
/** The person who signs in. `question.person` is the folder of a mounted Secret. */
const readPerson = (field) => (question.person ? readFileSync(join(question.person, field), 'utf8').trimEnd() : undefined);
const person = { name: readPerson('username'), password: readPerson('password') };
const forms = url || direct.forms;
const tokenHandler = url || direct.tokenHandler;
/** Milliseconds during which failed checks are repeated, because an ingress needs time to notice new Services. */
const retryPeriod = 60_000;

/**
 * Sends a request. Requests to the release's host go to `url`, because the host name may not resolve inside the
 * cluster.
 * @returns status, headers, text, and the body if it is JSON
 */
function send(address, { method = 'GET', headers = {}, body } = {}) {
  const target = new URL(address);
  const isNamed = url && target.hostname === host.split(':')[0];
  const isOwn = isNamed || (url && target.host === new URL(url).host);
  const hop = isOwn ? new URL(target.pathname + target.search, url) : target;
  const sendRequest = hop.protocol === 'https:' ? requestHttps : requestHttp;
  const own = isOwn && host ? { host: isNamed ? target.host : host } : {};
  return new Promise((done, fail) => {
    const options = { method, headers: { accept: 'application/json', ...headers, ...own }, timeout: 10_000 };
    const request = sendRequest(hop, { ...options, rejectUnauthorized: !insecure, servername: (isOwn && host) || undefined });
    request.on('timeout', () => request.destroy(new Error('no response within 10 s')));
    request.on('error', fail);
    request.on('response', (response) => {
      const parts = [];
      response.on('error', fail);
      response.on('data', (part) => parts.push(part));
      response.on('end', () => {
        const text = Buffer.concat(parts).toString();
        done({ status: response.statusCode, headers: response.headers, text, body: parseJson(text) });
      });
    });
    request.end(body);
  });
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function expect(holds, wanted, response) {
  const said = response.headers.location?.split('?')[0] ?? (response.body ? JSON.stringify(response.body) : '');
  if (!holds) throw new Error(`expected ${wanted}; got ${response.status} ${said}`);
}

const isProblem = ({ headers }) => /^application\/problem\+json/.test(headers['content-type'] ?? '');

/** A browser that follows redirects and keeps cookies by host. */
function createBrowser() {
  const jars = new Map();
  return async function visit(address, options = {}) {
    for (let hops = 0; hops < 15; hops += 1) {
      // A cookie belongs to a host, regardless of the port (RFC 6265 section 8.5).
      const { hostname } = new URL(address);
      const jar = jars.get(hostname) ?? new Map();
      jars.set(hostname, jar);
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
      const { follow = true, ...request } = hops === 0 ? options : { follow: options.follow };
      const response = await send(address, { ...request, headers: { ...request.headers, ...(cookie && { cookie }) } });
      for (const line of [response.headers['set-cookie'] ?? []].flat()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (/;\s*max-age=0|;\s*expires=thu, 01 jan 1970/i.test(line)) jar.delete(name);
        else jar.set(name, value);
      }
      if (!follow || response.status < 300 || response.status >= 400 || !response.headers.location) return { ...response, address };
      address = new URL(response.headers.location, address).href;
    }
    throw new Error('more than 15 redirects');
  };
}

const attribute = (tag, name) => unescape(new RegExp(`\\b${name}\\s*=\\s*["']([^"']*)["']`, 'i').exec(tag)?.[1] ?? '');
const unescape = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

/** Fills in the login form of the identity provider: its hidden fields, the name of the person and the password. */
function fillIn(page) {
  const form = /<form\b[^>]*>[\s\S]*?type\s*=\s*["']password["'][\s\S]*?<\/form>/i.exec(page.text)?.[0];
  if (form === undefined) throw new Error(`expected a login form; got ${page.status} ${page.address.split('?')[0]}`);
  const fields = new URLSearchParams();
  for (const [tag] of form.matchAll(/<input\b[^>]*>/gi)) {
    const type = attribute(tag, 'type').toLowerCase() || 'text';
    if (type === 'hidden') fields.set(attribute(tag, 'name'), attribute(tag, 'value'));
    if (type === 'text' || type === 'email') fields.set(attribute(tag, 'name'), person.name);
    if (type === 'password') fields.set(attribute(tag, 'name'), person.password);
  }
  const action = attribute(/<form\b[^>]*>/i.exec(form)[0], 'action');
  return { action: new URL(action || page.address, page.address).href, fields };
}

async function signInAndCallTarget() {
  const visit = createBrowser();
  const html = { accept: 'text/html' };
  const page = await visit(signInUrl(), { headers: html });
  const { action, fields } = fillIn(page);
  const type = { 'content-type': 'application/x-www-form-urlencoded', ...html };
  const after = await visit(action, { method: 'POST', headers: type, body: fields.toString() });
  const sessions = await visit(`${ownBase()}/token-handler/sessions`);
  expect(sessions.status === 200, `a session after the sign-in (the last page was ${after.status} ${after.address.split('?')[0]})`, sessions);
  if (signIn.target) {
    const path = signIn.path ? `/${signIn.path.replace(/^\/+/, '')}` : '';
    const response = await visit(`${ownBase()}/token-handler/targets/${encodeURIComponent(signIn.target)}${path}`);
    expect(response.status < 400, `a response of the target ${signIn.target}`, response);
  }
  const [{ logoutUrl }] = sessions.body;
  await visit(new URL(logoutUrl, `${ownBase()}/token-handler/sessions`).href, { headers: html, follow: false });
}

/** The address at which browsers reach the release, so that cookies and redirect URIs match. */
const ownBase = () => new URL(signIn.callbackUrl).origin;

function signInUrl(base = ownBase()) {
  const query = new URLSearchParams({ tenant: signIn.tenant, callbackUrl: signIn.callbackUrl });
  return `${base}/token-handler/clients/${encodeURIComponent(signIn.clientId)}/auth?${query}`;
}

/**
 * The tenant may have a realm at the identity provider, or another provider of `access.tenantIssuers`. Its realm, which
 * that map names, is not known here, so the provider of every tenant counts.
 */
function isOfProvider(location) {
  const origins = issuers.map((issuer) => new URL(issuer).origin);
  return location.startsWith(`${access.replace(/\/+$/, '')}/realms/`) || origins.includes(URL.parse(location)?.origin);
}

async function expectDependencies(service) {
  const response = await send(`${service}/health`);
  expect(response.status === 200 && response.body, 'status 200', response);
  const missing = Object.entries(response.body).filter(([, holds]) => holds !== true);
  if (missing.length > 0) throw new Error(`it cannot use: ${missing.map(([name]) => name).join(', ')}; its log says why`);
}

const checks = {
  'the form service reaches what it needs': () => expectDependencies(direct.forms),
  'the token handler reaches what it needs': () => expectDependencies(direct.tokenHandler),
  'the form service rejects a request without a token': async () => {
    const response = await send(`${forms}/form/v1/forms`);
    expect(response.status === 401 && isProblem(response), 'a problem with status 401', response);
  },
  'the token handler rejects a request without a session, under both paths': async () => {
    for (const prefix of ['/token-handler', '/token-handler/v1']) {
      const response = await send(`${tokenHandler}${prefix}/sessions`);
      expect(response.status === 401 && isProblem(response), `a problem with status 401 from ${prefix}/sessions`, response);
    }
  },
};
if (signIn.clientId) {
  checks[`a sign-in with ${signIn.clientId} redirects to the identity provider`] = async () => {
    const response = await send(signInUrl(tokenHandler));
    const location = response.headers.location ?? '';
    expect(response.status === 302 && isOfProvider(location), `302 to ${[access, ...issuers].join(' or ')}`, response);
    const parameters = new URL(location).searchParams;
    expect(parameters.get('code_challenge_method') === 'S256' && parameters.get('state'), 'a request with state and PKCE', response);
  };
}
if (signIn.clientId && person.name && person.password) {
  const target = signIn.target ? ` and calls the target ${signIn.target}` : '';
  checks[`${person.name} signs in with ${signIn.clientId}${target}, and signs out`] = signInAndCallTarget;
}
if (register.name) {
  checks[`the register ${register.name} is readable without a token`] = async () => {
    const query = new URLSearchParams({ tenantId: register.tenantId });
    const response = await send(`${forms}/form/v1/registers/${encodeURIComponent(register.name)}/entries?${query}`);
    expect(response.status === 200, 'status 200', response);
  };
}

console.log(url ? `Requests to ${url}${host ? ` with the Host header ${host}` : ''}:` : 'Requests to the Services, because the release has no ingress:');
const deadline = Date.now() + Number(process.env.TEST_RETRY_MS ?? retryPeriod);
let failed = 0;
for (const [title, check] of Object.entries(checks)) {
  for (;;) {
    try {
      await check();
      console.log(`  passed  ${title}`);
      break;
    } catch (error) {
      if (Date.now() < deadline) {
        await delay(1_000);
        continue;
      }
      failed += 1;
      console.log(`  failed  ${title}: ${error.message}`);
      break;
    }
  }
}
process.exitCode = failed === 0 ? 0 : 1;
