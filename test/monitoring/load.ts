// Sends a short load of real requests to `npm start`. It produces everything that the dashboards show: forms, codes,
// sign-ins, proxied requests, and refused and failing requests of each kind.
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { runConsoleDemo } from '../../dev/demo/console-steps.ts';
import { createConversation } from '../../dev/demo/conversation.ts';
import { runDemo } from '../../dev/demo/steps.ts';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';

const client = '/token-handler/clients/demo-console';
const demoTenant = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
const formService = '/token-handler/targets/form-service/form/v1';

/** Runs the demo, which checks each response, and then sends the requests that are refused. */
export async function runLoad(publicUrl: string): Promise<void> {
  const talk = createConversation(publicUrl, () => undefined);
  await runDemo(talk, () => undefined);
  await runConsoleDemo(talk, publicUrl);
  await refusedForms(publicUrl);
  await failedSignIns(publicUrl);
  await proxiedRequests(publicUrl);
  await tooManyReads(publicUrl);
}

async function refusedForms(publicUrl: string): Promise<void> {
  const body = { grant_type: 'client_credentials', client_id: 'demo-intake', client_secret: 'demo-intake-secret' };
  const realm = `${publicUrl}/auth/realms/demo/protocol/openid-connect/token`;
  const granted = await fetch(realm, { method: 'POST', body: new URLSearchParams(body) });
  const { access_token: token } = (await granted.json()) as { access_token: string };
  const send = (path: string, method: string, json?: object, code?: string) =>
    fetch(`${publicUrl}/form/v1/forms${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...(code !== undefined && { 'X-Form-Code': code }),
      },
      ...(json && { body: JSON.stringify(json) }),
    });
  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address: `ana.${Date.now()}@example.org` }] };
  const created = await send('', 'POST', { definitionId: 'business-licence', applicant });
  const { id } = (await created.json()) as { id: string };
  // Request more codes than allowed per hour. Use a wrong code, an unknown definition and an unknown form.
  for (let count = 0; count < 8; count += 1) await send(`/${id}`, 'POST', { operation: 'send-code' });
  await send(`/${id}/data`, 'GET', undefined, 'WRONG1');
  await send('', 'POST', { definitionId: `unknown-${Date.now()}`, applicant });
  await send('/00000000-0000-7000-8000-000000000000', 'GET');
}

/** One person cancels the sign-in, and another opens a client that does not exist. */
async function failedSignIns(publicUrl: string): Promise<void> {
  const browser = createSiteBrowser();
  const begin = (path: string) => {
    const callbackUrl = `${publicUrl}${path}/callback`;
    return browser.request(`${publicUrl}${path}/auth?${new URLSearchParams({ tenant: 'demo', callbackUrl })}`);
  };
  const state = (await begin(client)).location?.searchParams.get('state') ?? '';
  await browser.request(`${publicUrl}${client}/callback?${new URLSearchParams({ error: 'access_denied', state })}`);
  await begin('/token-handler/clients/unknown');
}

async function proxiedRequests(publicUrl: string): Promise<void> {
  const browser = createSiteBrowser();
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${publicUrl}${client}/callback` });
  const form = await browser.follow(await browser.request(`${publicUrl}${client}/auth?${query}`));
  await browser.follow(await browser.submit(form, { username: 'admin@example.com', password: 'admin' }));
  const get = (path: string) => browser.request(`${publicUrl}${path}`);
  for (let count = 0; count < 20; count += 1) await get(`${formService}/forms?top=1`);
  // Request a form that does not exist, a path that is rejected, and a target that the client does not have.
  await get(`${formService}/forms/00000000-0000-7000-8000-000000000000`);
  await get(`${formService}/forms%2f..%2f`);
  await get('/token-handler/targets/other-service/');
  await abortUpload(publicUrl, browser);
}

/** Sends the beginning of a body, and closes the connection. */
async function abortUpload(publicUrl: string, browser: SiteBrowser): Promise<void> {
  const url = `${publicUrl}${formService}/forms`;
  const cookie = browser.cookies(url).map(({ name, value }) => `${name}=${value}`);
  const upload = request(url, {
    method: 'POST',
    headers: {
      Cookie: cookie.join('; '),
      'X-XSRF-TOKEN': browser.cookie(url, 'XSRF-TOKEN') ?? '',
      'Content-Type': 'application/json',
      'Content-Length': 1_000,
    },
  });
  upload.on('error', () => undefined);
  upload.write('{"definitionId":');
  await delay(500);
  upload.destroy();
}

/** Reads a register without a token, more often than one address may do in a minute. */
async function tooManyReads(publicUrl: string): Promise<void> {
  const entries = `${publicUrl}/form/v1/registers/countries/entries?${new URLSearchParams({ tenantId: demoTenant })}`;
  const read = async () => void (await (await fetch(entries)).arrayBuffer());
  for (let count = 0; count < 16; count += 1) await Promise.all(Array.from({ length: 20 }, read));
}
