// The second part of the demo. A person signs in to a single-page app through the token handler. Then the app calls a
// service with the session, and signs the person out.
import { businessLicenceId } from '../demo-data/business-licence.ts';
import { demoConsoleId } from '../demo-data/demo-data.ts';
import { createDemoBrowser, type DemoBrowser, type Page } from './browser.ts';
import { type Conversation, check, Surprise } from './conversation.ts';

const client = `/token-handler/clients/${demoConsoleId}`;
const forms = '/token-handler/targets/form-service/form/v1/forms';

/**
 * Runs the second part of the demo. `url` is the origin of the frontend and of the APIs. Throws Surprise at the first
 * unexpected response.
 */
export async function runConsoleDemo(talk: Conversation, url: string): Promise<void> {
  await registerClient(talk);
  const browser = createDemoBrowser(talk, url);
  await signIn(talk, browser, url);
  await callTarget(talk, browser);

  talk.say('Sign out, which is a plain link');
  const out = await browser.send({ method: 'GET', path: `${client}/logout`, expect: 302 });
  check(out.headers.get('Location') === '/', 'the logout redirects to the root of the site');

  talk.say('The session has ended');
  await browser.send({ method: 'GET', path: '/token-handler/sessions', expect: 401 });
  await browser.send({ method: 'GET', path: `${forms}?top=1`, expect: 401 });
}

async function registerClient(talk: Conversation): Promise<void> {
  talk.say('An administrator’s script registers the frontend demo-console with the identity provider');
  const form = { grant_type: 'client_credentials', client_id: 'demo-admin', client_secret: 'demo-admin-secret' };
  const path = '/auth/realms/demo/protocol/openid-connect/token';
  const { body } = await talk.send({ method: 'POST', path, body: new URLSearchParams(form), expect: 200 });
  const headers = { Authorization: `Bearer ${String(body.access_token)}` };
  const registered = await talk.send({
    method: 'POST',
    path: client,
    headers,
    body: { registrationToken: 'demo-registration-token' },
    expect: 200,
  });
  check(registered.body.registered === true, 'the client is registered');
}

async function signIn(talk: Conversation, browser: DemoBrowser, url: string): Promise<void> {
  talk.say('admin@example.com opens the frontend, which redirects to the sign-in');
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${url}${client}/callback` });
  const form = await browser.follow({ method: 'GET', path: `${client}/auth?${query}` });
  check(/name="password"/.test(form.reply.text), 'the identity provider asks for a password');

  talk.say('The password goes to the identity provider, and the browser returns with a session');
  const body = new URLSearchParams({ ...hiddenFields(form), username: 'admin@example.com', password: 'admin' });
  const landed = await browser.follow({ method: 'POST', path: form.path, body });
  check(landed.path === '/', 'the sign-in ends at the root of the site');

  talk.say('The frontend asks who is signed in');
  const { json } = await browser.send({ method: 'GET', path: '/token-handler/sessions', expect: 200 });
  const [session]: unknown[] = Array.isArray(json) ? json : [];
  check(
    typeof session === 'object' && session !== null && 'email' in session && session.email === 'admin@example.com',
    'the first session is that of admin@example.com',
  );
}

function hiddenFields({ reply }: Page): Record<string, string> {
  const fields = [...reply.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
  return Object.fromEntries(fields.map(([, name, value]) => [name, value]));
}

async function callTarget(talk: Conversation, browser: DemoBrowser): Promise<void> {
  talk.say('Call the form service with the session; the token handler adds the access token');
  const listed = await browser.send({ method: 'GET', path: `${forms}?top=1`, expect: 200 });
  check(Array.isArray(listed.body.results), 'the response is a list of forms');

  talk.say('A change without the CSRF token is rejected');
  const body = { definitionId: businessLicenceId };
  await browser.send({ method: 'POST', path: forms, body, expect: 403 });

  talk.say('With the CSRF token, the form is created, and deleted again');
  const token = browser.cookie('XSRF-TOKEN');
  if (token === undefined) throw new Surprise('Expected a cookie XSRF-TOKEN.');
  const headers = { 'X-XSRF-TOKEN': token };
  const created = await browser.send({ method: 'POST', path: forms, headers, body, expect: 201 });
  await browser.send({ method: 'DELETE', path: `${forms}/${String(created.body.id)}`, headers, expect: 204 });
}
