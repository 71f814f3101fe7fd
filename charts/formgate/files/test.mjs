// `helm test`: asks the product through its ingress, as a browser and an application would. It signs nobody in: it goes as
// far as the redirect to the access service. Without an ingress it asks the Services themselves.
import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

const question = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { url, host, insecure, signIn, register, access, direct } = question;
const forms = url || direct.forms;
const tokenHandler = url || direct.tokenHandler;
/** Milliseconds in which an ingress that has just been told of the services should know them. */
const patience = 60_000;

/** @returns status, headers and JSON of the body, if it is some */
function ask(address) {
  const target = new URL(address);
  const send = target.protocol === 'https:' ? requestHttps : requestHttp;
  const headers = { accept: 'application/json', ...(url && host ? { host } : {}) };
  return new Promise((done, fail) => {
    const request = send(target, { headers, rejectUnauthorized: !insecure, servername: host || undefined, timeout: 10_000 });
    request.on('timeout', () => request.destroy(new Error('no answer within 10 s')));
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

function expect(holds, wanted, answer) {
  if (!holds) throw new Error(`expected ${wanted}; got ${answer.status} ${answer.headers.location ?? JSON.stringify(answer.body) ?? ''}`);
}

const isProblem = ({ headers }) => /^application\/problem\+json/.test(headers['content-type'] ?? '');

const checks = {
  'the form service refuses a caller without a token': async () => {
    const answer = await ask(`${forms}/form/v1/forms`);
    expect(answer.status === 401 && isProblem(answer), 'a problem with status 401', answer);
  },
  'the token handler says that nobody is signed in, by both addresses': async () => {
    for (const prefix of ['/token-handler', '/token-handler/v1']) {
      const answer = await ask(`${tokenHandler}${prefix}/sessions`);
      expect(answer.status === 401 && isProblem(answer), `a problem with status 401 from ${prefix}/sessions`, answer);
    }
  },
};
if (signIn.clientId) {
  checks[`signing in with ${signIn.clientId} leads to the access service`] = async () => {
    const query = new URLSearchParams({ tenant: signIn.tenant, callbackUrl: signIn.callbackUrl });
    const answer = await ask(`${tokenHandler}/token-handler/clients/${encodeURIComponent(signIn.clientId)}/auth?${query}`);
    const location = answer.headers.location ?? '';
    expect(answer.status === 302 && location.startsWith(`${access.replace(/\/+$/, '')}/realms/`), `302 to ${access}`, answer);
    const asked = new URL(location).searchParams;
    expect(asked.get('code_challenge_method') === 'S256' && asked.get('state'), 'a request with state and PKCE', answer);
  };
}
if (register.name) {
  checks[`the register ${register.name} can be read`] = async () => {
    const query = new URLSearchParams({ tenantId: register.tenantId });
    const answer = await ask(`${forms}/form/v1/registers/${encodeURIComponent(register.name)}/entries?${query}`);
    expect(answer.status === 200, 'status 200', answer);
  };
}

console.log(url ? `Through ${url}${host ? ` as ${host}` : ''}:` : 'There is no ingress; the Services themselves:');
const deadline = Date.now() + patience;
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
