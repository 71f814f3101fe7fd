// Signs a person in through the token handler of a test world, so that the load generator can send requests with a
// session.

import { createDemoBrowser } from '../../dev/demo/browser.ts';
import { createConversation } from '../../dev/demo/conversation.ts';

const client = '/token-handler/clients/demo-console';

/** Signs a person in, and returns the Cookie header of the session. */
export async function signInDemo(url: string): Promise<{ cookie: string }> {
  const talk = createConversation(url, () => undefined);
  const send = (path: string, body: object | URLSearchParams, headers = {}) =>
    talk.send({ method: 'POST', path, body, headers, expect: 200 });
  const form = { grant_type: 'client_credentials', client_id: 'demo-admin', client_secret: 'demo-admin-secret' };
  const { body } = await send('/auth/realms/demo/protocol/openid-connect/token', new URLSearchParams(form));
  const bearer = { Authorization: `Bearer ${String(body.access_token)}` };
  await send(client, { registrationToken: 'demo-registration-token' }, bearer);
  const browser = createDemoBrowser(talk, url);
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${url}${client}/callback` });
  const page = await browser.follow({ method: 'GET', path: `${client}/auth?${query}` });
  const hidden = [...page.reply.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
  const fields = Object.fromEntries(hidden.map(([, name, value]) => [name, value]));
  const credentials = new URLSearchParams({ ...fields, username: 'admin@example.com', password: 'admin' });
  await browser.follow({ method: 'POST', path: page.path, body: credentials });
  const session = browser.cookie('formgate_session');
  if (session === undefined) throw new Error('Signing in gave no session.');
  return { cookie: `formgate_session=${session}` };
}
