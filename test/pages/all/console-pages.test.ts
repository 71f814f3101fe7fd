// Tests every action of the console, and every page in every view. With FORMGATE_WRITE_SCREENS set (`npm run screens`),
// also takes the pictures of docs/screens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { consolePages, consoleViews, fileOfConsole } from '../../screens/console-screens.ts';
import { screensFolder } from '../../screens/screen-index.ts';
import { smallPng } from '../../screens/small-png.ts';
import { type ConsoleWorld, findFaults, settled, startConsoleWorld } from '../console-world.ts';

const isWriting = process.env.FORMGATE_WRITE_SCREENS !== undefined;

describe('the console', () => {
  let world: ConsoleWorld;
  let context: BrowserContext;
  let formId: string;
  beforeAll(async () => {
    world = await startConsoleWorld();
    context = await world.context();
    const page = await world.signIn(context);
    await page.close();
    formId = await world.form({ businessName: 'Northern Lights Bakery', structure: 'corporation', servesFood: true });
  });
  afterAll(() => world?.close());
  afterEach(() => expect(world.complaints.splice(0)).toEqual([]));

  async function open(path: string, from = context): Promise<Page> {
    const page = await from.newPage();
    onTestFinished(() => page.close());
    await page.goto(`${world.url}/console/demo${path}`);
    await settled(page);
    return page;
  }

  describe.each(consoleViews)('in the view $name', (view) => {
    it('has no violations, fits the screen, and keeps its header at 200 % text', { timeout: 240_000 }, async () => {
      const { colorScheme, viewport } = view;
      const own = await world.context({ colorScheme, viewport, storageState: await context.storageState() });
      onTestFinished(() => own.close());
      const page = await own.newPage();
      for (const { name, path, prepare } of consolePages) {
        await page.goto(`${world.url}/console/demo${path.replace('{form}', formId)}`);
        await settled(page);
        await prepare?.(page);
        expect(await findFaults(page), name).toEqual([]);
        await keep(page, fileOfConsole(name, view));
        await page.evaluate('document.documentElement.style.fontSize = "200%"');
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} at 200 %`).toBe(
          true,
        );
      }
    });
  });

  it('can be used by keyboard alone: the skip link, the areas, and an action', async () => {
    const page = await open('/forms');
    const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    const order: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      await page.keyboard.press('Shift+Tab');
      order.push(await focused());
    }
    expect(order).toEqual(['Operations', 'Sessions', 'Clients']);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Clients', level: 1 }).waitFor();
    expect(await focused()).toBe('Clients');
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBeDefined();
  });

  it('forms: unlock, return to draft, archive, history', async () => {
    const id = await world.form();
    await world.pool.query("UPDATE forms SET status = 'Locked', locked = now() WHERE id = $1", [id]);
    const page = await open(`/forms/${id}`);
    await page.getByRole('button', { name: 'Unlock' }).click();
    await page.getByText('The form is a draft again.').waitFor();
    await world.pool.query("UPDATE forms SET status = 'Submitted', submitted = now() WHERE id = $1", [id]);
    await page.reload();
    await page.getByRole('button', { name: 'Return to draft' }).click();
    await page.getByText('The form is a draft again.').waitFor();
    await world.pool.query("UPDATE forms SET status = 'Submitted', submitted = now() WHERE id = $1", [id]);
    await page.reload();
    await page.getByRole('button', { name: 'Archive' }).click();
    await page.getByText('The form is archived.').waitFor();
    for (const text of ['Created', 'Unlocked', 'Returned to draft', 'Archived'])
      await page.getByRole('rowheader', { name: text, exact: true }).waitFor();
    expect(await page.getByText('you, as an administrator').count()).toBe(3);
  });

  it('forms: filters are in the address of the page, an applicant’s address is not', async () => {
    const page = await open('/forms');
    await page.getByLabel('Status').selectOption('draft');
    await page.getByLabel('Definition').selectOption('business-licence');
    await page.getByLabel('Applicant’s address').fill('ana@example.org');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/status=draft/);
    expect(page.url()).toContain('definition=business-licence');
    expect(decodeURIComponent(page.url())).not.toContain('ana@');
    await page.getByText('This list as a curl command').click();
    await page.getByText('X-Applicant-Address: ana@example.org').waitFor();
    await page.getByRole('link', { name: formId }).waitFor();
  });

  it('registers: create, add, edit and delete entries, import CSV after a preview, pin and compare, delete', async () => {
    const page = await open('/registers');
    await page.getByText('Create a register').click();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Enter a name' }).click();
    expect(await page.evaluate('document.activeElement.id')).toBe('register-name');
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel('Name', { exact: true }).fill('towns');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('The register towns was created.').waitFor();
    await page.getByLabel('Table with a header').fill('value,label\nban,Banff\nwhi,<b>Whitehorse</b>\n');
    await page.getByRole('button', { name: 'Preview the changes' }).click();
    await page.getByText('2 added, 0 changed, 0 removed').waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('Imported: 2 added').waitFor();
    await page.getByRole('cell', { name: '<b>Whitehorse</b>', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Keep the present state' }).click();
    await page.getByText('is kept as a revision').waitFor();
    await page.getByRole('button', { name: 'Edit ban' }).click();
    await page.getByRole('textbox', { name: 'label' }).fill('Banff (Alberta)');
    await page.getByRole('button', { name: 'Save entry' }).click();
    await page.getByText('The entry ban was saved.').waitFor();
    await page.getByRole('button', { name: 'Add an entry' }).click();
    await page.getByRole('textbox', { name: 'value', exact: true }).fill('red');
    await page.getByRole('button', { name: 'Save entry' }).click();
    await page.getByText('The entry red was saved.').waitFor();
    await page.getByRole('button', { name: 'Edit red' }).click();
    await page.getByRole('button', { name: 'Delete entry' }).click();
    await page.getByText('The entry red was deleted.').waitFor();
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByText('0 added, 1 changed, 0 removed').waitFor();
    await page.getByRole('button', { name: 'Pin revision 0' }).click();
    await page.getByText('Revision 0 is pinned').waitFor();
    await page.getByText('Delete this register …').click();
    await page.getByLabel('Type towns to confirm').fill('towns');
    await page.getByRole('button', { name: 'Delete this register' }).click();
    await page.getByText('The register towns was deleted.').waitFor();
  });

  it('definitions: create, problems at their place, save, publish, compare, delete', async () => {
    const page = await open('/definitions');
    await page.getByText('Create a form definition').click();
    await page.getByLabel('Id', { exact: true }).fill('dog-licence');
    await page.getByLabel('Name', { exact: true }).fill('Dog licence');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'dog-licence' }).waitFor();
    await settled(page);
    const schema = page.getByLabel('Data schema', { exact: true });
    await schema.fill('{\n  "type": "object",\n  "required": "name"\n}');
    await page.getByRole('button', { name: /Data schema, line 3/ }).click();
    const chosen = 'document.activeElement.value.slice(document.activeElement.selectionStart).split("\\n")[0]';
    expect(await page.evaluate(chosen)).toBe('"name"');
    expect(await findFaults(page)).toEqual([]);
    await schema.fill('{\n  "type" "object"\n}');
    await page.getByRole('button', { name: 'Data schema, line 2: A colon is missing' }).waitFor();
    await schema.fill('{"type":"object","properties":{"name":{"type":"string","title":"Name of the dog"}}}');
    await page.getByLabel('Lock after').fill('P30D');
    await page.getByLabel('Roles of applicants').fill('applicant');
    await settled(page);
    await page.getByText('No problems found.').waitFor();
    await page.getByText('Preview as applicants see it').click();
    await page.getByLabel(/^Name of the dog/).fill('Rex');
    expect(await findFaults(page)).toEqual([]);
    await schema.fill('{"type":"object","properties":{"name":{"type":"string","title":"Name of the cat"}}}');
    await page.getByLabel(/^Name of the cat/).waitFor();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('The definition was saved.').waitFor();
    await page.getByRole('button', { name: 'Publish', exact: true }).click();
    await page.getByText('Revision 0 is published: forms use it.').waitFor();
    await settled(page);
    await page.getByLabel('Description (optional)').fill('For dogs');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('The definition was saved.').waitFor();
    await page.locator('.line.added').getByText('"description": "For dogs"').waitFor();
    const stored = await world.api('demo-admin', 'GET', '/configuration/v2/configuration/form-service/dog-licence');
    expect(stored).toMatchObject({
      latest: { revision: 1, configuration: { description: 'For dogs', retention: { lockAfter: 'P30D' } } },
      active: { revision: 0 },
    });
    await page.getByText('Delete this definition …').click();
    await page.getByLabel('Type dog-licence to confirm').fill('dog-licence');
    await page.getByRole('button', { name: 'Delete this definition' }).click();
    await page.getByText('The form definition dog-licence was deleted.').waitFor();
  });

  it('definitions: a change by somebody else is noticed before it is overwritten', async () => {
    const page = await open('/definitions/business-licence');
    await page.getByText('Preview as applicants see it').click();
    // A menu of the register of countries, read with the administrator's rights.
    await page
      .getByRole('combobox', { name: /^Country/ })
      .first()
      .waitFor();
    await page.getByLabel('Description (optional)').fill('Mine');
    const update = { 'business-licence': { description: 'Theirs' } };
    const document = '/configuration/v2/configuration/platform/form-service';
    await world.api('demo-admin', 'PATCH', document, { operation: 'UPDATE', update });
    await page.getByRole('button', { name: /^Save/ }).click();
    await page.getByText('Somebody has changed this definition').waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Replace that change by mine' }).click();
    await page.getByText('The definition was saved').waitFor();
    const stored = await world.api('demo-admin', 'GET', document);
    expect(stored).toMatchObject({ latest: { configuration: { 'business-licence': { description: 'Mine' } } } });
  });

  it('clients: create, edit, register by token, change redirect URIs; secrets are cleared', async () => {
    const page = await open('/clients');
    await page.getByText('Create a client').click();
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByRole('alert').getByRole('link', { name: 'Enter a name' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    const callback = `${world.url}/token-handler/clients/permits/callback`;
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
      .fill(`${callback}\n${world.url}/token-handler/clients/permits/callback2`);
    await page.getByRole('button', { name: 'Replace', exact: true }).click();
    await page.getByText('The registered redirect URIs were replaced.').waitFor();
    await page.getByText('Edit this client').click();
    await page.getByLabel('Description (optional)').fill('For permits');
    await page.getByRole('button', { name: 'Save client' }).click();
    await page.getByText('The client was saved.').waitFor();
    const document = await world.api('demo-admin', 'GET', '/configuration/v2/configuration/platform/token-handler');
    expect(document).toMatchObject({
      latest: { configuration: { clients: { permits: { description: 'For permits' } } } },
    });
  });

  it('sessions: an administrator ends the session of another person', async () => {
    const other = await world.context();
    onTestFinished(() => other.close());
    await world.signIn(other, '/sessions', 'alice');
    const page = await open('/sessions');
    await page.getByRole('button', { name: /End the session of Alice/ }).click();
    await page.getByText('The session of Alice Applicant has ended.').waitFor();
  });

  it('operations: shows counts, and releases an item of the quarantine', async () => {
    const page = await open('/operations');
    await page.getByText('Undelivered events and calls').waitFor();
    await page.getByText('Nothing is in quarantine.').waitFor();
    const { rows } = await world.pool.query('SELECT tenant_id FROM forms WHERE id = $1', [formId]);
    await world.pool.query(
      `INSERT INTO quarantine (kind, item, tenant_id, about, reason, detail, first_seen, last_tried, attempts, version)
       VALUES ('form', $1, $2, $3, 'rejected', 'status 400', now(), now(), 3, '0.0.0')`,
      [formId, rows[0].tenant_id, JSON.stringify({ formId })],
    );
    await page.reload();
    await page.getByRole('button', { name: /^Release/ }).click();
    await page.getByText('The item is released').waitFor();
    await page.getByRole('cell', { name: 'Released' }).waitFor();
    expect(await findFaults(page)).toEqual([]);
  });
});

async function keep(page: Page, name: string): Promise<void> {
  if (!isWriting) return;
  const [width = 0, whole = 0] = await page.evaluate<number[]>('[innerWidth, document.documentElement.scrollHeight]');
  // A picture shows the top of a long page, such as the editor.
  const clip = { x: 0, y: 0, width, height: Math.min(whole, 1_500) };
  const picture = await page.screenshot({ fullPage: true, clip, animations: 'disabled', caret: 'hide' });
  writeFileSync(join(screensFolder, name), smallPng(picture));
}
