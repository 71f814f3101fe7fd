// Tests the actions of the console on clients.
import { expect, it } from 'vitest';
import type { ConsoleSuite } from '../../console-suite.ts';
import { findFaults } from '../../console-world.ts';

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
    await page.getByLabel('Registration token').fill('wrong-token');
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.locator('.problem').waitFor();
    expect(await page.getByLabel('Registration token').inputValue()).toBe('');
    await page.getByLabel('Registration token').fill('demo-registration-token');
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.getByText('The client is registered: people can sign in.').waitFor();
    expect(await page.content()).not.toContain('demo-registration-token');
    await page.getByText('Change the registered redirect URIs').click();
    await page
      .getByLabel('Registered redirect URIs')
      .fill(`${callback}\n${suite.world.url}/token-handler/clients/permits/callback2`);
    await page.getByRole('button', { name: 'Replace', exact: true }).click();
    await page.getByText('The registered redirect URIs were replaced.').waitFor();
    await page.getByText('Edit this client').click();
    await page.getByLabel('Description (optional)').fill('For permits');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client was saved.').waitFor();
    const document = await suite.world.api(
      'demo-admin',
      'GET',
      '/configuration/v2/configuration/platform/token-handler',
    );
    expect(document).toMatchObject({
      latest: { configuration: { clients: { permits: { description: 'For permits' } } } },
    });
  });
}
