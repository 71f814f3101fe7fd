// `helm test`: sends requests to the release through its ingress, or to its Services if it has no ingress. The sign-in check
// ends at the redirect to the identity provider: it signs no person in.
import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

const question = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { url, host, insecure, signIn, register, access, direct } = question;
const forms = url || direct.forms;
const tokenHandler = url || direct.tokenHandler;
/** Milliseconds during which failed checks are repeated, because an ingress needs time to learn of new services. */
const retryPeriod = 60_000;

/** @returns status, headers, and the body if it is JSON */
function get(address) {
  const target = new URL(address);
  const send = target.protocol === 'https:' ? requestHttps : requestHttp;
  const headers = { accept: 'application/json', ...(url && host ? { host } : {}) };
  return new Promise((done, fail) => {
    const request = send(target, { headers, rejectUnauthorized: !insecure, servername: host || undefined, timeout: 10_000 });
    request.on('timeout', () => request.destroy(new Error('no response within 10 s')));
    request.on('error', fail);
    request.on('response', (response) => {
      const parts = [];
      response.on('error', fail);
      response.on('data', (part) => parts.push(part));
      response.on('end', () => {
        let body;
        try {
          body = JSON.parse(Buffer.concat(parts).toString());
        } catch {}
        done({ status: response.statusCode, headers: response.headers, body });
      });
    });
    request.end();
  });
}

function expect(holds, wanted, response) {
  if (!holds) throw new Error(`expected ${wanted}; got ${response.status} ${response.headers.location ?? JSON.stringify(response.body) ?? ''}`);
}

const isProblem = ({ headers }) => /^application\/problem\+json/.test(headers['content-type'] ?? '');

const checks = {
  'the form service rejects a request without a token': async () => {
    const response = await get(`${forms}/form/v1/forms`);
    expect(response.status === 401 && isProblem(response), 'a problem with status 401', response);
  },
  'the token handler rejects a request without a session, under both paths': async () => {
    for (const prefix of ['/token-handler', '/token-handler/v1']) {
      const response = await get(`${tokenHandler}${prefix}/sessions`);
      expect(response.status === 401 && isProblem(response), `a problem with status 401 from ${prefix}/sessions`, response);
    }
  },
};
if (signIn.clientId) {
  checks[`a sign-in with ${signIn.clientId} redirects to the identity provider`] = async () => {
    const query = new URLSearchParams({ tenant: signIn.tenant, callbackUrl: signIn.callbackUrl });
    const response = await get(`${tokenHandler}/token-handler/clients/${encodeURIComponent(signIn.clientId)}/auth?${query}`);
    const location = response.headers.location ?? '';
    expect(response.status === 302 && location.startsWith(`${access.replace(/\/+$/, '')}/realms/`), `302 to ${access}`, response);
    const parameters = new URL(location).searchParams;
    expect(parameters.get('code_challenge_method') === 'S256' && parameters.get('state'), 'a request with state and PKCE', response);
  };
}
if (register.name) {
  checks[`the register ${register.name} is readable without a token`] = async () => {
    const query = new URLSearchParams({ tenantId: register.tenantId });
    const response = await get(`${forms}/form/v1/registers/${encodeURIComponent(register.name)}/entries?${query}`);
    expect(response.status === 200, 'status 200', response);
  };
}

console.log(url ? `Requests to ${url}${host ? ` with the Host header ${host}` : ''}:` : 'Requests to the Services, because the release has no ingress:');
const deadline = Date.now() + retryPeriod;
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
