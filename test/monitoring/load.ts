// A short load of real requests against `npm start`, which touches everything that the dashboards show: forms, codes,
// sign-ins, proxied requests, and refused and failing ones of each kind.
import { createConversation } from '../../dev/demo/conversation.ts';
import { runConsoleDemo } from '../../dev/demo/console-steps.ts';
import { runDemo } from '../../dev/demo/steps.ts';
import { createSiteBrowser } from '../support/site-browser.ts';

const client = '/token-handler/clients/demo-console';
const formService = '/token-handler/targets/form-service/form/v1';

/** Runs the demo, which checks each response, and the requests that are refused. */
export async function runLoad(publicUrl: string): Promise<void> {
  const talk = createConversation(publicUrl, () => undefined);
  await runDemo(talk, () => undefined);
  await runConsoleDemo(talk, publicUrl);
  await refusedForms(publicUrl);
  await failedSignIns(publicUrl);
  await proxiedRequests(publicUrl);
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
  // More codes than an hour allows, a wrong code, a definition that does not exist, and a form that does not exist.
  for (let count = 0; count < 8; count += 1) await send(`/${id}`, 'POST', { operation: 'send-code' });
  await send(`/${id}/data`, 'GET', undefined, 'WRONG1');
  await send('', 'POST', { definitionId: `unknown-${Date.now()}`, applicant });
  await send('/00000000-0000-7000-8000-000000000000', 'GET');
}

/** A person who cancels, and one who comes back with a code that the identity provider did not issue. */
async function failedSignIns(publicUrl: string): Promise<void> {
  for (const result of [{ error: 'access_denied' }, { code: 'invalid' }]) await failedSignIn(publicUrl, result);
}

async function failedSignIn(publicUrl: string, result: Record<string, string>): Promise<void> {
  const browser = createSiteBrowser();
  const callback = `${publicUrl}${client}/callback`;
  const begun = await browser.request(`${publicUrl}${client}/auth?${new URLSearchParams({ tenant: 'demo', callbackUrl: callback })}`);
  const state = begun.location?.searchParams.get('state') ?? '';
  await browser.request(`${callback}?${new URLSearchParams({ ...result, state })}`);
}

async function proxiedRequests(publicUrl: string): Promise<void> {
  const browser = createSiteBrowser();
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${publicUrl}${client}/callback` });
  const form = await browser.follow(await browser.request(`${publicUrl}${client}/auth?${query}`));
  await browser.follow(await browser.submit(form, { username: 'admin@example.com', password: 'admin' }));
  const get = (path: string) => browser.request(`${publicUrl}${path}`);
  for (let count = 0; count < 20; count += 1) await get(`${formService}/forms?top=1`);
  // Not found at the target, a path that is rejected, and a target that the client does not have.
  await get(`${formService}/forms/00000000-0000-7000-8000-000000000000`);
  await get(`${formService}/forms%2f..%2f`);
  await get('/token-handler/targets/other-service/');
}
