// Tests that people can sign in to the console as soon as `npm start` is ready.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { roleToken } from '../../test/support/platform.ts';
import { createSiteBrowser } from '../../test/support/site-browser.ts';
import { startTestTokenHandler, type TestTokenHandler } from '../../test/support/token-handler.ts';
import { registerConsole } from './console.ts';

const publicUrl = 'http://localhost:18080';
let handler: TestTokenHandler;
let token: string;
beforeAll(async () => {
  handler = await startTestTokenHandler({ env: { CONSOLE_URL: publicUrl } });
  token = await handler.adminToken();
});
afterAll(() => handler.close());

/** Returns whether the console's client is a core client, and its redirect URIs at the identity provider. */
async function registered(): Promise<unknown> {
  const { body } = await handler.api('/clients', { token });
  const clients = body as { id: string; core: boolean; registration: { redirectUris: string[] } | null }[];
  const found = clients.find(({ id }) => id === 'formgate-console');
  return found && { core: found.core, redirectUris: found.registration?.redirectUris };
}

it("the console's client is registered at the identity provider, also after the port has changed", async () => {
  for (const url of [publicUrl, publicUrl, 'http://localhost:18081']) {
    await registerConsole({ url: handler.url, token, publicUrl: url });
    const callback = `${url}/token-handler/clients/formgate-console/callback`;
    await expect.poll(registered).toEqual({ core: true, redirectUris: [callback] });
    const query = new URLSearchParams({ tenant: 'demo', callbackUrl: callback });
    const browser = createSiteBrowser();
    const path = `/token-handler/v1/clients/formgate-console/auth?${query}`;
    const page = await browser.follow(await browser.request(`${handler.url}${path}`));
    expect(page.text).toMatch(/name="password"/);
  }
});

it('a refused registration is an error that names the request', async () => {
  const nobody = await roleToken(handler.platform.access, {}, { realm: 'demo' });
  await expect(registerConsole({ url: handler.url, token: nobody, publicUrl })).rejects.toThrow(
    /client was not registered: 40[13] to PUT/,
  );
});
