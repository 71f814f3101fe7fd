// Tests the actions of the console on clients.
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults, settled } from '../../console-world.ts';

const document = '/configuration/v2/configuration/platform/token-handler';

/** Returns a client as it is in the tenant's configuration. */
async function configured({ world }: ConsoleSuite, id: string): Promise<unknown> {
  const { latest } = (await world.api('demo-admin', 'GET', document)) as {
    latest: { configuration: { clients: Record<string, unknown> } };
  };
  return latest.configuration.clients[id];
}

/** Opens the page of a client while the token handler still lists the client with older values. */
async function openOlder(suite: ConsoleSuite, id: string, older: object): Promise<Page> {
  const page = await suite.context.newPage();
  onTestFinished(() => page.close());
  const client = { id, description: null, keycloakLogout: false, core: false, registered: false, registration: null };
  await page.route(/\/v1\/clients(?:\?.*)?$/, (route) => route.fulfill({ json: [{ ...client, ...older }] }));
  await page.goto(`${suite.world.url}/console/demo/clients/${id}`);
  await settled(page);
  return page;
}

export function testClients(suite: ConsoleSuite): void {
  it('clients: create, edit, register by token, change redirect URIs; secrets are cleared', async () => {
    const page = await suite.open('/clients');
    await page.getByText('Create a client').click();
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Enter a name' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    const callback = `${suite.world.url}/token-handler/clients/permits/callback`;
    await page.getByLabel('Id', { exact: true }).fill('permits');
    await page.getByLabel('Name', { exact: true }).fill('Permits');
    await page.getByLabel('Redirect URIs').fill(callback);
    await page.getByLabel('Targets').fill('form-service urn:example:platform:form-service');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client permits was created.').waitFor();
    await page.getByText('Register with a registration token').click();
    await page.getByLabel('Registration token').fill('not-sent');
    await page.route('**/v1/clients/permits', (route) => route.abort());
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.getByText('Nothing that you typed was lost.').waitFor();
    await expect.poll(() => page.getByLabel('Registration token').inputValue()).toBe('not-sent');
    await page.unroute('**/v1/clients/permits');
    await page.getByLabel('Registration token').fill('wrong-token');
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.locator('.problem').waitFor();
    await expect.poll(() => page.getByLabel('Registration token').inputValue()).toBe('');
    await page.getByLabel('Registration token').fill('demo-registration-token');
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.getByText('The client is registered: people can sign in.').waitFor();
    expect(await page.content()).not.toContain('demo-registration-token');
    await page.getByText('Change the registered redirect URIs').click();
    const uris = page.getByLabel('Registered redirect URIs');
    // The page finds the first three faults, and the token handler the last one.
    for (const [text, problem] of [
      [' ', 'Enter at least one redirect URI'],
      ['permits.example.org/callback', 'permits.example.org/callback must be an absolute http or https URL'],
      ['https://a.example.org/#x', 'https://a.example.org/#x must not have a fragment'],
      ['https://a.example.org/b/../c', 'https://a.example.org/b/../c must not have a dot segment'],
    ] as const) {
      await uris.fill(text);
      await page.getByRole('button', { name: 'Replace', exact: true }).click();
      await page.locator('#registered-uris-error', { hasText: problem }).waitFor();
      await page.locator('#registered-uris[aria-invalid=true]').waitFor();
      await page.locator('.error-summary:focus').waitFor();
    }
    await expect.poll(() => page.locator('.problem').count()).toBe(0);
    expect(await findFaults(page)).toEqual([]);
    await uris.fill(`${callback}\n${suite.world.url}/token-handler/clients/permits/callback2`);
    await page.getByRole('button', { name: 'Replace', exact: true }).click();
    await page.getByText('The registered redirect URIs were replaced.').waitFor();
    await page.getByText('Edit this client').click();
    await page.getByLabel('Sign-out also ends the session at the identity provider').check();
    await page.getByLabel('Description (optional)').fill('For permits');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client was saved.').waitFor();
    expect(await configured(suite, 'permits')).toMatchObject({ description: 'For permits' });
  });

  it('clients: redirect URIs that were registered since the page was opened are offered for a change', async () => {
    const { api, url } = suite.world;
    const [first, second] = ['callback', 'callback2'].map((path) => `${url}/token-handler/clients/moving/${path}`);
    const moving = { id: 'moving', name: 'Moving', description: '', targets: [], keycloakLogout: false };
    const update = { clients: { moving: { ...moving, redirectUris: [first] } } };
    await api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update });
    const page = await suite.open('/clients/moving');
    await page.getByText('Register with a registration token').click();
    await page.getByLabel('Registration token').fill('demo-registration-token');
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.getByText('The client is registered: people can sign in.').waitFor();
    await page.getByText('Change the registered redirect URIs').click();
    const uris = page.getByLabel('Registered redirect URIs');
    await expect.poll(() => uris.inputValue()).toBe(first);
    await api('demo-admin', 'PUT', '/token-handler/v1/clients/moving', { redirectUris: [first, second] });
    // A save of the client loads the page's data again.
    await page.getByText('Edit this client').click();
    await page.getByLabel('Description (optional)').fill('Moved');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client was saved.').waitFor();
    await expect.poll(() => uris.inputValue()).toBe(`${first}\n${second}`);
  });

  it('clients: a new client with the id of one that exists is refused, and that one stays as it is', async () => {
    const { api, url } = suite.world;
    const taken = {
      ...{ id: 'taken', name: 'Live', description: '', keycloakLogout: false },
      redirectUris: [`${url}/token-handler/clients/taken/callback`],
      targets: [{ id: 'form-service', upstream: 'urn:example:platform:form-service' }],
    };
    await api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update: { clients: { taken } } });
    const page = await suite.open('/clients');
    await page.getByText('Create a client').click();
    await page.getByLabel('Id', { exact: true }).fill('taken');
    await page.getByLabel('Name', { exact: true }).fill('Another');
    await page.getByLabel('Redirect URIs').fill(`${url}/token-handler/clients/another/callback`);
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('A client with this id exists. Choose another id.').waitFor();
    expect(await findFaults(page)).toEqual([]);
    expect(await configured(suite, 'taken')).toEqual(taken);
    // Use an id that every JavaScript object inherits as a member, although no client has this id.
    await page.getByLabel('Id', { exact: true }).fill('constructor');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client constructor was created.').waitFor();
  });

  it('clients: the form shows what is stored, also if the token handler lists something older, and keeps it', async () => {
    const { api, url } = suite.world;
    const stored = {
      ...{ id: 'stored', name: 'New name', description: '', keycloakLogout: false, scope: 'email' },
      redirectUris: [`${url}/token-handler/clients/stored/callback`, 'https://*.example.org/callback'],
      targets: { forms: 'form-service' },
    };
    await api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update: { clients: { stored } } });
    const page = await openOlder(suite, 'stored', { name: 'Old name', redirectUris: [], targets: [] });
    await page.getByText('Edit this client').click();
    await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe('New name');
    expect(await page.getByLabel('Redirect URIs').inputValue()).toBe(stored.redirectUris.join('\n'));
    expect(await page.getByLabel('Targets').inputValue()).toBe('forms form-service');
    await page.getByLabel('Description (optional)').fill('Newer');
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client was saved.').waitFor();
    expect(await configured(suite, 'stored')).toEqual({ ...stored, description: 'Newer' });
  });

  it('clients: a client in the older format, outside of the member `clients`, can be edited', async () => {
    const redirectUris = [`${suite.world.url}/token-handler/clients/older/callback`];
    const older = { id: 'older', name: 'Older', description: '', redirectUris, targets: [], keycloakLogout: false };
    await suite.world.api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update: { older } });
    const page = await openOlder(suite, 'older', { name: 'Older', redirectUris, targets: [] });
    await page.getByText('Edit this client').click();
    await page.getByLabel('Description (optional)').fill('Newer');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client was saved.').waitFor();
    expect(await configured(suite, 'older')).toEqual({ ...older, description: 'Newer' });
  });

  it('clients: a change is not saved over that of somebody else, which can be shown or replaced', async () => {
    const { api } = suite.world;
    const change = (name: string) => {
      const redirectUris = [`${suite.world.url}/token-handler/clients/shared/callback`];
      const shared = { id: 'shared', name, description: '', redirectUris, targets: [], keycloakLogout: false };
      return api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update: { clients: { shared } } });
    };
    await change('First');
    const page = await openOlder(suite, 'shared', { name: 'First', redirectUris: [], targets: [] });
    await page.getByText('Edit this client').click();
    await page.getByLabel('Description (optional)').fill('Mine');
    await change('Theirs');
    const save = page.getByRole('button', { name: 'Save client' });
    const refused = page.getByText('Somebody has changed or deleted this client since you opened it.');
    await save.click();
    await refused.waitFor();
    expect(await findFaults(page)).toEqual([]);
    expect(await page.getByLabel('Description (optional)').inputValue()).toBe('Mine');
    expect(await configured(suite, 'shared')).toMatchObject({ name: 'Theirs', description: '' });
    await page.getByRole('button', { name: 'Discard them' }).click();
    await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue()).toBe('Theirs');
    await page.getByLabel('Description (optional)').fill('Mine');
    await save.click();
    await page.getByText('The client was saved.').waitFor();
    await page.getByLabel('Description (optional)').fill('Mine again');
    await change('Theirs again');
    await save.click();
    await refused.waitFor();
    await page.getByRole('button', { name: 'Replace that change with mine' }).click();
    await refused.waitFor({ state: 'detached' });
    await expect.poll(() => configured(suite, 'shared')).toMatchObject({ name: 'Theirs', description: 'Mine again' });
  });

  it('clients: uses the credentials of a client that exists, clears the secret, and lists leftovers', async () => {
    const { api, url } = suite.world;
    const entry = (id: string) => ({
      ...{ id, name: id, description: '', targets: [], keycloakLogout: false },
      redirectUris: [`${url}/token-handler/clients/${id}/callback`],
    });
    const update = { clients: { provided: entry('provided'), replaced: entry('replaced') } };
    await api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update });
    const theirs = await createAtProvider(url);
    const page = await suite.open('/clients/provided');
    await page.getByText('Use a client that exists at the identity provider').click();
    await page.getByRole('button', { name: 'Use this client' }).click();
    const summary = page.getByRole('alert').and(page.locator(':focus'));
    await summary.getByRole('link', { name: 'Enter the client id' }).waitFor();
    await summary.getByRole('link', { name: 'Enter the client secret' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel('Client id at the identity provider').fill(theirs.client_id);
    await page.getByLabel('Client secret').fill(theirs.client_secret);
    await page.getByText('Use this client as a curl command').click();
    expect(await page.content()).not.toContain(theirs.client_secret);
    await page.getByRole('button', { name: 'Use this client' }).click();
    await page.getByText('The client uses these credentials: people can sign in.').waitFor();
    await page.getByText('it is never changed or deleted from here').waitFor();
    expect(await page.content()).not.toContain(theirs.client_secret);

    const leftovers = page.getByRole('region', { name: 'Leftovers at the identity provider' });
    await leftovers.getByText('There are none.').waitFor();
    const { rows } = await suite.world.handlerPool.query('SELECT tenant_id FROM client_registrations LIMIT 1');
    await suite.world.handlerPool.query(
      `INSERT INTO client_leftovers (tenant_id, client_id, realm, client_name, oidc_client_id, reason, created)
       VALUES ($1, 'provided', 'demo', 'Formgate provided 1', NULL, 'response-lost', now()),
              ($1, 'provided', 'demo', '<b>Formgate provided 2</b>', 'c-2', 'token-refused', now())`,
      [rows[0].tenant_id],
    );
    await page.reload();
    await leftovers
      .getByRole('row', { name: /Formgate provided 1 unknown demo The registration got no response/ })
      .waitFor();
    await leftovers.getByRole('row', { name: /<b>Formgate provided 2<\/b> c-2 demo It was replaced/ }).waitFor();
    expect(await findFaults(page)).toEqual([]);
  });
}

/** Creates a client as an administrator of the identity provider would, and returns its credentials. */
async function createAtProvider(site: string): Promise<{ client_id: string; client_secret: string }> {
  const discovered = await fetch(`${site}/auth/realms/demo/.well-known/openid-configuration`);
  const { registration_endpoint: endpoint } = (await discovered.json()) as { registration_endpoint: string };
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { Authorization: 'Bearer demo-registration-token', 'Content-Type': 'application/json' },
    body: JSON.stringify({
      client_name: 'theirs',
      redirect_uris: [`${site}/token-handler/clients/provided/callback`],
      token_endpoint_auth_method: 'client_secret_basic',
    }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as { client_id: string; client_secret: string };
}
