// Tests every state of the applicant's pages in a browser: errors, lost connections, codes, languages, hostile texts,
// every kind of question, and accessibility on all screens. The intake application is scripted, so that tests reach
// every state quickly. test/pages/applicant.test.ts and applicant-conflict.test.ts use the real intake application.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import { businessLicence, exampleFormData } from '../../../dev/demo-data/business-licence.ts';
import { bundledSchema } from '../../../src/forms/definitions/bundled-schema.ts';
import { pageRoutes } from '../../../src/forms/pages/routes.ts';
import { createUrns } from '../../../src/service/urn.ts';
import { buildPages } from '../../../web/build.ts';
import { launchChromium } from '../../support/chromium.ts';
import { type ListeningApp, startApp } from '../../support/listening-app.ts';
import { faultsOf, openPage } from '../applicant-world.ts';
import { type ScriptedIntake, scriptedForm, scriptIntake } from '../scripted-intake.ts';
import { viewsOfRun } from '../selection.ts';

let app: ListeningApp;
let browser: Browser;
beforeAll(async () => {
  await buildPages();
  [app, browser] = await Promise.all([startApp(pageRoutes({ pages: ['apply'] })), launchChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await app?.close();
});

const licence = {
  ...businessLicence(createUrns('urn:example'), 'http://forms.example.org'),
  tenantName: 'Demo',
  files: true,
  languages: ['en', 'fr'],
};
const simple = {
  ...{ id: 'simple', name: 'Simple form', tenantName: 'Demo', files: false, languages: ['en', 'fr'] },
  dataSchema: {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string', title: 'Your name' }, note: { type: 'string', title: 'Note' } },
  },
  uiSchema: {},
};
/** Returns a code of two letters, different for each index. */
const codeOf = (index: number) => String.fromCharCode(65 + Math.floor(index / 26), 65 + (index % 26));
const countries = Array.from({ length: 60 }, (_, index) => ({
  value: codeOf(index),
  label: codeOf(index) === 'CA' ? 'Canada' : `Country ${index}`,
}));

/** Opens a page. `prepare` runs before the page is loaded. */
async function open(
  script: ScriptedIntake,
  options: BrowserContextOptions = {},
  fragment = '',
  prepare: (page: Page) => Promise<unknown> = async () => undefined,
) {
  const opened = await openPage(browser, options);
  onTestFinished(async () => {
    await opened.context.close();
    expect(opened.complaints).toEqual([]);
  });
  await scriptIntake(opened.page, script);
  await prepare(opened.page);
  await opened.page.goto(`${app.url}/apply/demo/form${fragment}`);
  return opened;
}

async function begin(page: Page): Promise<void> {
  await page.getByLabel('Your email address').fill('ana@example.org');
  await page.getByRole('button', { name: 'Start now' }).click();
  await page.getByRole('button', { name: 'Continue' }).waitFor();
}

const next = (page: Page) => page.getByRole('button', { name: 'Continue' }).click();
const inDraft = { status: { id: scriptedForm, status: 'Draft', readable: true } };
const asForm = `#form=${scriptedForm}`;

describe('errors', () => {
  it('are listed at the top, get the focus, lead to their fields, and use the same words there', async () => {
    const { page } = await open({ definition: licence });
    await page.getByRole('button', { name: 'Start now' }).click();
    await expect.poll(() => page.title()).toBe('Error: Business licence – Demo');
    await expect.poll(() => page.locator('.error-summary a').allTextContents()).toEqual(['Enter your email address']);
    await begin(page);
    await next(page);
    await page.locator('.error-summary:focus').waitFor();
    await expect.poll(() => page.title()).toMatch(/^Error: The business – /);
    const listed = await page.locator('.error-summary a').allTextContents();
    expect(listed[0]).toBe('Enter an answer for “Name of the business”');
    const beside = await page.locator('.field .error').allTextContents();
    expect(beside.map((text) => text.replace('Error: ', ''))).toEqual(listed);
    for (const text of listed) {
      await page.locator('.error-summary a', { hasText: text }).click();
      await page.locator('.field.has-error', { hasText: text }).locator(':focus').waitFor();
    }
    await page.getByLabel('Name of the business').fill('Bakery');
    await next(page);
    await expect.poll(() => page.locator('.error-summary a').count()).toBe(listed.length - 1);
  });

  it('of the service are shown at their field, from the summary', async () => {
    const errors = [
      { pointer: '/data/name', detail: 'must match' },
      { pointer: '/data/hidden', detail: 'is required' },
    ];
    const answers = { 'POST submission': { status: 400, body: { type: 'urn:x:validation', errors } } };
    const { page } = await open({ definition: simple, answers, ...inDraft }, {}, `${asForm}&page=1`);
    await page.getByLabel('Your name').fill('Ana');
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.locator('.error-summary:focus').waitFor();
    await expect
      .poll(() => page.locator('.error-summary li').allTextContents())
      .toEqual(['Check your answer for “Your name”', 'Check your answer for “Hidden”']);
    await page.locator('.error-summary a').click();
    await page.locator('input:focus').waitFor();
    await expect
      .poll(() => page.locator('.field .error').allTextContents())
      .toEqual(['Error: Check your answer for “Your name”']);
  });
});

describe('answers that belong together', () => {
  const fields = { name: 'Your name', phone: 'Phone', email: 'Email' };
  const definition = {
    ...simple,
    dataSchema: {
      type: 'object',
      required: ['name'],
      anyOf: [{ required: ['phone'] }, { required: ['email'] }],
      properties: Object.fromEntries(Object.entries(fields).map(([name, title]) => [name, { type: 'string', title }])),
    },
    uiSchema: {
      type: 'Categorization',
      elements: Object.keys(fields).map((name) => ({
        ...{ type: 'Category', label: `About ${name}` },
        elements: [{ type: 'Control', scope: `#/properties/${name}` }],
      })),
    },
  };

  it('may be on several pages: the summary says that one is missing, no page before it does', async () => {
    const { page } = await open({ definition });
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    for (const title of ['About phone', 'About email', 'Check your answers']) {
      await next(page);
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
    }
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.locator('.error-summary:focus').waitFor();
    await expect
      .poll(() => page.locator('.error-summary li').allTextContents())
      .toContain('An answer is missing, or some answers do not go together. Check your answers');
    await page.locator('.error-summary a', { hasText: 'Email' }).click();
    await page.getByLabel('Email').fill('ana@example.org');
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
  });

  it('are an object that goes away with its last answer, so that it stays optional', async () => {
    const contact = {
      type: 'object',
      title: 'Contact',
      required: ['who'],
      properties: { who: { title: 'Who', type: 'string' } },
    };
    const dataSchema = { type: 'object', properties: { ...simple.dataSchema.properties, contact } };
    const script: ScriptedIntake = { definition: { ...simple, dataSchema } };
    const { page } = await open(script);
    await begin(page);
    await page.getByLabel(/^Who/).fill('B');
    await page.getByLabel(/^Your name/).fill('Ana');
    await expect.poll(() => script.saved).toEqual({ data: { name: 'Ana', contact: { who: 'B' } }, files: {} });
    await page.getByLabel(/^Who/).fill('');
    await expect.poll(() => script.saved).toEqual({ data: { name: 'Ana' }, files: {} });
    await next(page);
    await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
  });

  it('are a box and the question that its tick hides, which is back without the tick', async () => {
    const rule = { effect: 'SHOW', condition: { scope: '#/properties/same', schema: { const: false } } };
    const script: ScriptedIntake = {
      definition: {
        ...simple,
        dataSchema: {
          properties: { same: { type: 'boolean', title: 'The same', default: false }, other: { type: 'string' } },
        },
        uiSchema: {
          type: 'VerticalLayout',
          elements: [
            { type: 'Control', scope: '#/properties/same' },
            { type: 'Control', scope: '#/properties/other', rule },
          ],
        },
      },
    };
    const { page } = await open(script);
    await begin(page);
    await page.getByLabel(/^Other/).waitFor();
    await page.getByLabel('The same').check();
    await page.getByLabel(/^Other/).waitFor({ state: 'detached' });
    await page.getByLabel('The same').uncheck();
    await page.getByLabel(/^Other/).waitFor();
    await expect.poll(() => script.saved).toEqual({ data: { same: false }, files: {} });
  });
});

describe('a hidden question with an answer that is not valid', () => {
  const rule = { effect: 'SHOW', condition: { scope: '#/properties/hasDog', schema: { const: true } } };
  const born = { type: 'string', format: 'date', title: 'Born on' };
  const dog = { type: 'object', title: 'Dog', required: ['name'], properties: { name: { type: 'string' }, born } };
  const control = (scope: string, more: object = {}) => ({ type: 'Control', scope: `#/properties/${scope}`, ...more });

  /** Opens a form that hides `hidden` unless the person has a dog. The service refuses these pointers until removed. */
  async function openHidden(hidden: object[], pointers: string[], properties: object) {
    const script: ScriptedIntake = {
      definition: {
        ...simple,
        dataSchema: { properties: { hasDog: { type: 'boolean', title: 'I have a dog' }, ...properties } },
        uiSchema: { type: 'VerticalLayout', elements: [control('hasDog'), ...hidden] },
      },
    };
    const errors = pointers.map((pointer) => ({ pointer, detail: 'must match' }));
    script.answers = { 'POST submission': { status: 400, body: { type: 'urn:x:validation', errors } } };
    const opened = await open(script, { bypassCSP: true });
    await begin(opened.page);
    await opened.page.getByLabel('I have a dog').check();
    return { ...opened, script };
  }

  async function removeHidden(page: Page, script: ScriptedIntake, listed: string[]): Promise<void> {
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.locator('.error-summary:focus').waitFor();
    await expect.poll(() => page.locator('.error-summary a').allTextContents()).toEqual(listed);
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('.error-summary a').first().click();
    const button = page.getByRole('button', { name: 'Remove the answers that the form no longer asks for' });
    await button.and(page.locator(':focus')).waitFor();
    script.answers = {};
    await button.click();
    await page.getByText('The answers are removed.').waitFor();
    await expect.poll(() => page.locator('.error-summary').count()).toBe(0);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
  }
  const textOf = (label: string) =>
    `“${label}” is incomplete or not valid, but the form no longer asks for it. Remove this answer`;

  it('can be removed before the form is sent, and the other answers stay', async () => {
    const { page, script } = await openHidden([control('born', { rule })], ['/data/born', '/data/born'], { born });
    await page.getByLabel('Day').fill('12');
    await page.getByLabel('I have a dog').uncheck();
    await removeHidden(page, script, [textOf('Born on')]);
    expect(script.saved).toEqual({ data: { hasDog: false }, files: {} });
  });

  it('may be a section of which a required answer is missing', async () => {
    const controls = [control('dog/properties/name'), control('dog/properties/born')];
    const group = { type: 'Group', rule, elements: controls };
    const { page, script } = await openHidden([group], ['/data/dog/name'], { dog });
    for (const [part, text] of [
      ['Day', '1'],
      ['Month', '2'],
      ['Year', '2020'],
    ] as const)
      await page.getByLabel(part).fill(text);
    await page.getByLabel('I have a dog').uncheck();
    await removeHidden(page, script, [textOf('Dog')]);
    expect(script.saved).toEqual({ data: { hasDog: false }, files: {} });
  });

  it('does not keep the person on its page if it is in a section that is shown', async () => {
    const isYoung = { scope: '#/properties/isYoung', schema: { const: true } };
    const ofYoung = control('born', { rule: { effect: 'SHOW', condition: isYoung } });
    const detail = { type: 'VerticalLayout', elements: [control('isYoung'), ofYoung] };
    const section = control('dog', { options: { detail } });
    const schema = { type: 'object', properties: { isYoung: { type: 'boolean', title: 'It is young' }, born } };
    const { page, script } = await openHidden([section], ['/data/dog/born'], { dog: schema });
    await page.getByLabel('It is young').check();
    await page.getByLabel('Day').fill('12');
    await page.getByLabel('It is young').uncheck();
    await removeHidden(page, script, [textOf('Born on')]);
    expect(script.saved).toEqual({ data: { hasDog: true, dog: { isYoung: false } }, files: {} });
  });

  it('leaves the other problems in the summary when it is removed, also one about a list that is shown', async () => {
    const isYoung = { scope: '#/properties/name', schema: { const: 'young' } };
    const elements = [control('name'), control('born', { rule: { effect: 'SHOW', condition: isYoung } })];
    const people = control('people', { options: { detail: { type: 'VerticalLayout', elements } } });
    const items = { ...dog, required: ['born'] };
    const pointers = ['/data/born', '/data/people/0/born'];
    const properties = { born, people: { type: 'array', title: 'People', items } };
    const { page } = await openHidden([control('born', { rule }), people], pointers, properties);
    await page.getByLabel('Day').fill('12');
    await page.getByLabel('I have a dog').uncheck();
    await page.getByRole('button', { name: /^Add to: People/ }).click();
    await page.getByLabel(/^Name/).fill('Bo');
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    const links = page.locator('.error-summary:focus a');
    const aboutPeople = 'Check your answer for “People”';
    await expect.poll(() => links.allTextContents()).toEqual([textOf('Born on'), aboutPeople]);
    await page.getByRole('button', { name: 'Remove the answers that the form no longer asks for' }).click();
    await expect.poll(() => links.allTextContents()).toEqual([aboutPeople]);
    expect(await page.getByText('The answers are removed.').count()).toBe(0);
    await links.click();
    await page.locator('.has-error', { hasText: aboutPeople }).waitFor();
  });
});

it('a date that does not exist is shown in the summary as it was typed', async () => {
  const dataSchema = { properties: { day: { type: 'string', format: 'date', title: 'Begins' } } };
  const stored = { data: { day: '2026-02-30' }, files: {} };
  const answers = { 'GET data': { status: 200, body: stored, headers: { ETag: '"1"' } } };
  const definition = { ...simple, dataSchema };
  const { page } = await open({ definition, answers, ...inDraft }, {}, `${asForm}&page=check`);
  await expect.poll(() => page.locator('.answers dd').first().textContent()).toBe('2026-02-30');
});

it('a date with a time is shown in the summary as the person entered it', async () => {
  const dataSchema = { properties: { at: { type: 'string', format: 'date-time', title: 'Begins' } } };
  const { page } = await open({ definition: { ...simple, dataSchema } }, { timezoneId: 'America/Edmonton' });
  await begin(page);
  await page.getByLabel(/^Begins/).fill('2026-05-01T14:30');
  await next(page);
  await page.getByText('May 1, 2026 at 14:30').waitFor();
});

it('errors follow the items of a list, and a summary that comes back does not take the focus', async () => {
  const items = { type: 'object', required: ['who'], properties: { who: { type: 'string', title: 'Who' } } };
  const definition = { ...simple, dataSchema: { properties: { people: { type: 'array', title: 'People', items } } } };
  const { page } = await open({ definition });
  await begin(page);
  for (const name of ['', 'Bo', '']) {
    await page.getByRole('button', { name: /^Add to: People/ }).click();
    if (name) await page.getByLabel('Who').last().fill(name);
  }
  await next(page);
  await page.locator('.error-summary:focus').waitFor();
  const errors = () => page.locator('.error-summary a').count();
  await expect.poll(errors).toBe(2);
  await page.getByRole('button', { name: /^Remove People.*number 1$/ }).click();
  await expect.poll(errors).toBe(1);
  await expect
    .poll(() =>
      page.getByLabel('Who').evaluateAll((inputs) => inputs.map((input) => input.getAttribute('aria-invalid'))),
    )
    .toEqual([null, 'true']);
  await page
    .getByRole('button', { name: /^Add to: People/ })
    .and(page.locator(':focus'))
    .waitFor();
});

describe('a busy service', () => {
  /** Lets the first starts of a draft fail, with these headers each. Returns the idempotency keys of all starts. */
  async function failStarts(page: Page, headers: Record<string, string>[]): Promise<(string | undefined)[]> {
    const keys: (string | undefined)[] = [];
    await page.route('**/forms', (route) => {
      const failure = headers[keys.length];
      keys.push(route.request().headers()['idempotency-key']);
      return failure ? route.fulfill({ status: 503, headers: failure }) : route.fallback();
    });
    return keys;
  }

  it('starts one draft, without a word to the person', async () => {
    const { page } = await open({ definition: simple });
    const keys = await failStarts(page, [{}, { 'Retry-After': '2' }]);
    await begin(page);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  it('that asks for a long pause is named at once', async () => {
    const { page } = await open({ definition: simple });
    const keys = await failStarts(page, [{ 'Retry-After': '30' }]);
    await page.getByLabel('Your email address').fill('ana@example.org');
    await page.getByRole('button', { name: 'Start now' }).click();
    await page.getByRole('heading', { name: 'There is a problem' }).waitFor();
    expect(keys).toHaveLength(1);
    await page.getByRole('button', { name: 'Start now' }).click();
    await page.getByRole('button', { name: 'Continue' }).waitFor();
  });
});

it('a service that responds late with a problem is not asked again, so that the person does not wait for minutes', async () => {
  const { page } = await open({ definition: simple }, {}, '', (opened) => opened.clock.install());
  let starts = 0;
  await page.route('**/forms', async (route) => {
    starts += 1;
    await page.clock.fastForward(11_000);
    await route.fulfill({ status: 504 });
  });
  await page.getByLabel('Your email address').fill('ana@example.org');
  await page.getByRole('button', { name: 'Start now' }).click();
  await page.getByRole('heading', { name: 'There is a problem' }).waitFor();
  expect(starts).toBe(1);
});

describe('saving', () => {
  it('survives a lost connection, warns only while something is not saved, and loses nothing', async () => {
    const script: ScriptedIntake = { definition: simple };
    const { page } = await open(script);
    await begin(page);
    await page.route('**/data', (route) => route.abort());
    await page.getByLabel('Your name').fill('Ana');
    await page.getByText('No connection.').first().waitFor();
    const dialog = page.waitForEvent('dialog');
    await page.close({ runBeforeUnload: true });
    await (await dialog).dismiss();
    const again = page.getByRole('button', { name: 'Try again now' });
    await again.waitFor();
    await page.unroute('**/data');
    await page.getByLabel('Note').fill('Later');
    const saved = page.locator('[data-state=saved]').waitFor();
    // The page also tries again by itself, and may remove the button before a busy machine clicks it.
    await Promise.race([again.click().catch(() => undefined), saved]);
    await saved;
    await expect.poll(() => script.saved).toEqual({ data: { name: 'Ana', note: 'Later' }, files: {} });
    const closed = page.waitForEvent('close');
    await page.close({ runBeforeUnload: true });
    await closed;
  });

  it('says that the service does not accept the answers, and saves other answers immediately', async () => {
    const script: ScriptedIntake = { definition: simple };
    script.answers = { 'PUT data': { status: 413, body: { type: 'urn:formgate:problem:too-large' } } };
    const { page } = await open(script, { bypassCSP: true });
    await begin(page);
    await page.getByLabel('Your name').fill('Too long');
    await page.getByText('cannot be saved as they are').first().waitFor();
    expect(await page.getByText('No connection.').count()).toBe(0);
    expect(await faultsOf(page)).toEqual([]);
    script.answers = {};
    await page.getByLabel('Your name').fill('Ana');
    // The page would repeat the refused answers only after half a minute.
    await page.locator('[data-state=saved]').waitFor({ timeout: 20_000 });
    await expect.poll(() => script.saved).toEqual({ data: { name: 'Ana' }, files: {} });
  });

  it('says that the connection is lost after a minute without a response, and repeats the same save', async () => {
    const script: ScriptedIntake = { definition: simple };
    const { page } = await open(script, {}, '', (opened) => opened.clock.install());
    await begin(page);
    const saveIds: (string | undefined)[] = [];
    await page.route('**/data', (route) => {
      saveIds.push(route.request().headers()['save-id']);
      // The first save gets no response.
      return saveIds.length > 1 ? route.fallback() : undefined;
    });
    await page.getByLabel('Your name').fill('Ana');
    await expect.poll(() => saveIds.length).toBe(1);
    await page.clock.fastForward(61_000);
    await page.locator('[data-state=offline]').waitFor();
    await page.locator('[data-state=saved]').waitFor();
    expect(new Set(saveIds).size).toBe(1);
    expect(script.saved).toEqual({ data: { name: 'Ana' }, files: {} });
  });

  it('asks for a code when the cookie has ended, keeps what was typed, and then saves it', async () => {
    const answers: ScriptedIntake['answers'] = { 'PUT data': { status: 401, body: {} } };
    const script: ScriptedIntake = { definition: simple, answers };
    const { page } = await open(script);
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await page.getByText('What you have typed is still here.').waitFor();
    delete answers['PUT data'];
    await page.getByLabel('Code', { exact: true }).fill('abc 123');
    await page.getByRole('button', { name: 'Open my form' }).click();
    await page.locator('[data-state=saved]').waitFor();
    expect([await page.getByLabel('Your name').inputValue(), script.saved]).toEqual([
      'Ana',
      { data: { name: 'Ana' }, files: {} },
    ]);
  });
});

describe('the defaults of a form', () => {
  const name = { type: 'string', title: 'Your name', default: 'Ana' };
  const definition = { ...simple, dataSchema: { type: 'object', required: ['name'], properties: { name } } };

  it('are saved and submitted if the person changes nothing', async () => {
    const script: ScriptedIntake = { definition };
    const { page } = await open(script);
    await begin(page);
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
    expect(script.saved).toEqual({ data: { name: 'Ana' }, files: {} });
  });
});

test('a date with a time stays as typed, in time zones with historic offsets too, and a wrong one is reported', async () => {
  const meeting = { type: 'string', format: 'date-time', title: 'Meeting' };
  const script: ScriptedIntake = { definition: { ...simple, dataSchema: { properties: { meeting } } } };
  const { page } = await open(script, { timezoneId: 'Europe/Berlin' });
  await begin(page);
  const input = page.getByLabel(/^Meeting/);
  const savedAs = (value: string) => expect.poll(() => script.saved).toEqual({ data: { meeting: value }, files: {} });
  await input.fill('2026-05-01T14:30');
  await savedAs('2026-05-01T12:30:00.000Z');
  // While a year is typed, browsers report the years 0002, 0020 and 0202.
  for (const year of ['0002', '0020', '0202', '2027']) {
    await input.evaluate((element, date) => {
      const field = element as unknown as { value: string };
      // Only the date changes, as when a person types the year.
      field.value = `${date}-05-01T${field.value.slice(-5)}`;
      element.dispatchEvent(new Event('input', { bubbles: true }));
    }, year);
    await expect.poll(() => input.inputValue()).toBe(`${year}-05-01T14:30`);
  }
  await savedAs('2027-05-01T12:30:00.000Z');
  await input.fill('12026-05-01T14:30');
  await savedAs('12026-05-01T14:30');
  await next(page);
  await page.getByRole('link', { name: '“Meeting” is not in the right form' }).waitFor();
  await expect.poll(() => input.inputValue()).toBe('12026-05-01T14:30');
});

it('the pages have only the language in which a definition says its texts are', async () => {
  const { page } = await open({ definition: { ...simple, language: 'fr' } }, { bypassCSP: true });
  await page.getByRole('button', { name: 'Commencer' }).waitFor();
  expect(await page.evaluate('document.documentElement.lang')).toBe('fr');
  expect(await page.getByRole('button', { name: 'English' }).count()).toBe(0);
  expect(await page.getByRole('radio').count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
  const { page: other } = await open({ definition: { ...simple, language: 'es' } });
  await other.getByRole('button', { name: 'Start now' }).waitFor();
  await other.getByRole('button', { name: 'Français' }).waitFor();
});

it('a page whose script is missing on the server says in both languages to load it again', async () => {
  const isScript = /\/assets\/.*\.js$/;
  const { page } = await open({ definition: simple }, {}, '', (opened) =>
    opened.route(isScript, (route) => route.fulfill({ status: 404 })),
  );
  await page.getByText('If this page stays like this, load it again.').waitFor();
  await page.getByText('Si rien ne change, rechargez cette page.').waitFor();
  await page.unroute(isScript);
  await page.reload();
  await page.getByRole('button', { name: 'Start now' }).waitFor();
  expect(await page.getByText('load it again').count()).toBe(0);
});

it('a draft on hold cannot be deleted, and the page says whom to ask', async () => {
  const answers = { [`DELETE ${scriptedForm}`]: { status: 409, body: { type: 'urn:formgate:problem:form-held' } } };
  const { page } = await open({ definition: simple, answers, ...inDraft }, {}, `${asForm}&page=delete`);
  await page.getByRole('button', { name: 'Yes, delete my draft' }).click();
  await page.locator('.error-summary:focus').getByText('Your draft cannot be deleted now.').waitFor();
});

it('a double click asks for one code, even if the code is sent between the clicks', async () => {
  const { page } = await open({ definition: simple }, {}, asForm);
  let asked = 0;
  await page.route('**/codes', (route) => {
    asked += 1;
    return asked > 1 ? route.fulfill({ status: 429, json: {} }) : route.fallback();
  });
  const button = page.getByRole('button', { name: 'Send me a code by email' });
  const box = await button.boundingBox();
  await page.mouse.move((box?.x ?? 0) + 10, (box?.y ?? 0) + 10);
  await page.mouse.down({ clickCount: 1 });
  await page.mouse.up({ clickCount: 1 });
  await page.getByRole('status').getByText('we have sent a code').waitFor();
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  // A later click asks for another code, so the second click of the double click has been handled.
  await page.getByRole('button', { name: 'Send another code' }).click();
  await page.locator('.error-summary').waitFor();
  expect(asked).toBe(2);
});

it('“Send another code” shows that another code was sent, also to people who hear the page, and clears the former', async () => {
  const { page } = await open({ definition: simple }, {}, asForm);
  await page.getByRole('button', { name: 'Send me a code by email' }).click();
  const status = page.locator('main').getByRole('status');
  await status.getByText('we have sent a code').waitFor();
  const gate = Promise.withResolvers<void>();
  await page.route('**/codes', (route) => gate.promise.then(() => route.fallback()));
  await page.getByLabel('Code', { exact: true }).fill('1234-5678');
  await page.getByRole('button', { name: 'Send another code' }).click();
  await expect.poll(() => status.textContent()).toMatch(/^(?:One moment…)?$/);
  gate.resolve();
  await status.getByText('we have sent another code').waitFor();
  expect(await page.getByLabel('Code', { exact: true }).inputValue()).toBe('');
});

describe('a form that cannot be filled in is explained', () => {
  it.each([
    ['Locked', 'Your draft is locked'],
    ['Submitted', 'You have sent this form'],
  ])('%s', async (status, title) => {
    const script = {
      definition: simple,
      status: { id: scriptedForm, status, readable: false, deleteOn: '2026-09-01' },
    };
    const { page } = await open(script, {}, asForm);
    await page.getByRole('heading', { name: title }).waitFor();
  });

  it.each([
    [409, 'form-locked', 'Your draft is locked'],
    [410, 'gone', 'This form does not exist any more'],
  ])('while it is open: %i %s', async (status, type, title) => {
    const answers = { 'PUT data': { status, body: { type: `urn:formgate:problem:${type}` } } };
    const { page } = await open({ definition: simple, answers });
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await page.getByRole('heading', { name: title }).waitFor();
  });

  it('unknown, and wrong codes', async () => {
    const answers = {
      'POST code-checks': { status: 403, body: {} },
      'POST codes': { status: 429, body: {}, headers: { 'Retry-After': '61' } },
    };
    const { page } = await open({ definition: simple, answers }, {}, asForm);
    await page.getByRole('button', { name: 'Open my form' }).click();
    await page.getByText('Enter the code from the email').first().waitFor();
    await page.getByLabel('Code', { exact: true }).fill('WRONG1');
    await page.getByRole('button', { name: 'Open my form' }).click();
    await page.getByRole('link', { name: 'This code is wrong or too old.' }).waitFor();
    await page.getByRole('button', { name: 'Send me a code by email' }).click();
    await page.getByRole('link', { name: 'You have tried too often. Wait 2 minutes' }).waitFor();
  });

  it('of another definition: the page opens the form with the questions of its own definition', async () => {
    const script: ScriptedIntake = { definition: simple };
    script.status = { ...inDraft.status, definitionId: 'other form' };
    const { page } = await open(script, {}, '', (opened) =>
      opened.route('**/definitions/other%20form', (route) => {
        const body = JSON.stringify({ ...simple, id: 'other form', name: 'The other form' });
        return route.fulfill({ contentType: 'application/json', body });
      }),
    );
    await page.goto(`${app.url}/apply/demo/simple${asForm}&page=1`);
    await page.reload();
    await page.getByLabel('Your name').waitFor();
    const { pathname, hash } = new URL(page.url());
    expect([pathname, hash]).toEqual(['/apply/demo/other%20form', `${asForm}&page=1`]);
    expect(await page.title()).toContain('The other form');
  });

  it.each([
    ['the service does not know it', 'application/problem+json', 'We do not know this form'],
    ['a proxy has no route to the service', 'text/html', 'The page does not work right now'],
  ])('if its definition is answered with 404 because %s', async (_why, contentType, title) => {
    const body = contentType === 'text/html' ? '<h1>404</h1>' : '{"type":"urn:formgate:problem:not-found"}';
    const { page } = await open({ definition: simple }, {}, '', (opened) =>
      opened.route('**/definitions/form', (route) => route.fulfill({ status: 404, contentType, body })),
    );
    await page.getByRole('heading', { name: title }).waitFor();
  });

  it.each(['', '.', '>'])('with a link that lost its end or has %j after it', async (more) => {
    const id = more === '' ? scriptedForm.slice(0, -3) : scriptedForm + more;
    const { page } = await open({ definition: simple }, {}, `#form=${id}`);
    await page.getByRole('heading', { name: 'We do not know this form' }).waitFor();
    await page.getByText('It may be old, or part of it may be missing.').waitFor();
  });

  it('closed, with the dates of the next window', async () => {
    const body = { type: 'urn:x:intake-closed', opens: '2027-01-01T12:00:00Z', closes: null };
    const answers = { 'POST forms': { status: 409, body }, 'POST submission': { status: 409, body } };
    const { page } = await open({ definition: simple, answers, ...inDraft });
    await page.getByLabel('Your email address').fill('ana@example.org');
    await page.getByRole('button', { name: 'Start now' }).click();
    const closed = page.locator('.error-summary', {
      hasText: 'This form is closed right now. It opens on January 1, 2027 at 12:00.',
    });
    await closed.waitFor();
    await page.goto(`${app.url}/apply/demo/form${asForm}&page=1`);
    await page.reload();
    await page.getByLabel('Your name').fill('Ana');
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await closed.waitFor();
  });

  it('left on a shared computer', async () => {
    const { page } = await open({ definition: simple });
    await begin(page);
    await page.getByRole('button', { name: 'Leave this computer' }).click();
    await page.getByRole('heading', { name: 'This computer has forgotten your form' }).waitFor();
    expect(new URL(page.url()).hash).toBe('');
  });
});

it('“Leave this computer” runs once, says that it takes long, and names what has failed', async () => {
  const { page } = await open({ definition: simple, ...inDraft }, { bypassCSP: true }, `${asForm}&page=1`);
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  await page.route('**/cookie', async (route) => {
    asked += 1;
    await gate.promise;
    await route.abort();
  });
  const leave = page.getByRole('button', { name: 'Leave this computer' });
  const status = page.locator('.buttons').getByRole('status');
  await leave.click();
  await leave.dispatchEvent('click');
  await status.getByText('One moment…').waitFor();
  expect([asked, await leave.getAttribute('aria-disabled')]).toEqual([1, 'true']);
  expect(await faultsOf(page)).toEqual([]);
  gate.resolve();
  await status.getByText('This computer still remembers your form.').waitFor();
});

it('a start page that follows another page gives its heading the focus, the first page does not', async () => {
  const { page } = await open({ definition: simple });
  await page.getByRole('button', { name: 'Start now' }).waitFor();
  expect(await page.locator('h1:focus').count()).toBe(0);
  await begin(page);
  await page.getByRole('button', { name: 'Leave this computer' }).click();
  await page.getByRole('button', { name: 'Start a new form' }).click();
  await page.getByRole('button', { name: 'Start now' }).waitFor();
  await page.locator('h1:focus').waitFor();
});

it('what is typed while this computer forgets the form is kept, and saved after a code was entered', async () => {
  const script: ScriptedIntake = { definition: simple, ...inDraft };
  const { page } = await open(script, {}, `${asForm}&page=1`);
  const gate = Promise.withResolvers<void>();
  await page.route('**/cookie', (route) => gate.promise.then(() => route.fallback()));
  const asked = page.waitForRequest('**/cookie');
  await page.getByRole('button', { name: 'Leave this computer' }).click();
  await asked;
  script.answers = { 'PUT data': { status: 401, body: {} } };
  await page.getByLabel('Your name').fill('Ana');
  gate.resolve();
  await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
  script.answers = {};
  await page.getByLabel('Code', { exact: true }).fill('RIGHT1');
  await page.getByRole('button', { name: 'Open my form' }).click();
  await expect.poll(() => page.getByLabel('Your name').inputValue()).toBe('Ana');
  await expect.poll(() => script.saved).toMatchObject({ data: { name: 'Ana' } });
});

test('switching the language keeps the page and what was typed', async () => {
  const { page } = await open({ definition: licence });
  await begin(page);
  await page.getByLabel('Name of the business').fill('Bakery');
  await page.getByRole('button', { name: 'Français' }).click();
  await page.getByRole('button', { name: 'Continuer' }).waitFor();
  await expect.poll(() => page.locator('html').getAttribute('lang')).toBe('fr');
  await expect.poll(() => page.getByLabel('Name of the business').inputValue()).toBe('Bakery');
  await page.getByRole('button', { name: 'Continuer' }).click();
  await expect.poll(() => page.title()).toMatch(/^Erreur : /);
});

describe('after a change of the language', () => {
  const french = (page: Page) => page.getByRole('button', { name: 'Français' }).click();
  const summary = (page: Page) => expect.poll(() => page.locator('.error-summary li').allTextContents());

  it('errors of the start page are in the new language', async () => {
    const { page } = await open({ definition: simple });
    await page.getByRole('button', { name: 'Start now' }).click();
    await summary(page).toEqual(['Enter your email address']);
    await french(page);
    await summary(page).toEqual(['Entrez votre adresse courriel']);
  });

  it('errors of questions are in the new language, in the summary and at the field, with the number of an item', async () => {
    const properties = { names: { type: 'array', title: 'Names', items: { type: 'string', minLength: 2 } } };
    const definition = { ...simple, dataSchema: { type: 'object', properties } };
    const { page } = await open({ definition });
    await begin(page);
    await page.getByRole('button', { name: 'Add to: Names' }).click();
    await page.getByRole('textbox').fill('A');
    await next(page);
    const english = '“Names: number 1” must have at least 2 characters';
    await summary(page).toEqual([english]);
    await french(page);
    const message = '« Names : numéro 1 » doit avoir au moins 2 caractères';
    await summary(page).toEqual([message]);
    await expect.poll(() => page.locator('.field .error').allTextContents()).toEqual([`Erreur : ${message}`]);
  });

  it('errors of the summary of answers are in the new language, and so are those of the service', async () => {
    const errors = [{ pointer: '/data/note', detail: 'must match' }];
    const answers = { 'POST submission': { status: 400, body: { type: 'urn:x:validation', errors } } };
    const { page } = await open({ definition: simple, answers, ...inDraft }, {}, `${asForm}&page=check`);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await summary(page).toEqual(['Enter an answer for “Your name”']);
    await french(page);
    await summary(page).toEqual(['Entrez une réponse pour « Your name »']);
    await page.locator('.error-summary a').click();
    await page.getByLabel('Your name').fill('Ana');
    await page.getByRole('button', { name: 'Continuer' }).click();
    await page.getByRole('button', { name: 'Envoyer le formulaire' }).click();
    await summary(page).toEqual(['Vérifiez votre réponse pour « Note »']);
    await page.getByRole('button', { name: 'English' }).click();
    await summary(page).toEqual(['Check your answer for “Note”']);
  });

  it('errors of the page that asks for a code are in the new language', async () => {
    const { page } = await open({ definition: simple }, {}, asForm);
    await page.getByRole('button', { name: 'Open my form' }).click();
    await summary(page).toEqual(['Enter the code from the email']);
    await french(page);
    await summary(page).toEqual(['Entrez le code du courriel']);
  });

  it('errors of the page that deletes a draft are in the new language', async () => {
    const answers = { [`DELETE ${scriptedForm}`]: { status: 409, body: { type: 'urn:formgate:problem:form-held' } } };
    const { page } = await open({ definition: simple, answers, ...inDraft }, {}, `${asForm}&page=delete`);
    await page.getByRole('button', { name: 'Yes, delete my draft' }).click();
    await page.locator('.error-summary', { hasText: 'Your draft cannot be deleted now.' }).waitFor();
    await french(page);
    await page.locator('.error-summary', { hasText: 'On ne peut pas supprimer ce brouillon' }).waitFor();
  });

  it('a draft that is opened with a code is shown in the chosen language instead of its own', async () => {
    const status = { id: scriptedForm, status: 'Draft', readable: false, language: 'en' };
    const script: ScriptedIntake = { definition: simple, status };
    const { page } = await open(script, {}, asForm);
    await page.getByRole('button', { name: 'Open my form' }).waitFor();
    await french(page);
    await page.getByLabel('Code', { exact: true }).fill('RIGHT1');
    script.status = { ...status, readable: true };
    await page.getByRole('button', { name: 'Ouvrir mon formulaire' }).click();
    await page.getByLabel('Your name').waitFor();
    await page.getByRole('button', { name: 'Continuer' }).waitFor();
  });
});

test('the browser’s back button leads to the page before', async () => {
  const { page } = await open({ definition: licence, entries: countries, ...inDraft }, {}, `${asForm}&page=1`);
  await page.getByRole('button', { name: 'Where and who' }).click();
  await page.getByLabel('City').waitFor();
  await page.goBack();
  await page.getByLabel('Name of the business').waitFor();
});

test('hostile labels, data, choices and file names stay text', async () => {
  const hostile = '<img src=x onerror="document.title=1">{{7*7}}</script><b>';
  const text = (more: object) => ({ type: 'string', title: hostile, description: hostile, ...more });
  const definition = {
    ...simple,
    ...{ name: hostile, description: hostile, tenantName: hostile, files: true },
    dataSchema: {
      properties: {
        a: text({}),
        b: text({ enum: [hostile] }),
        c: text({ format: 'file-urn' }),
        d: text({}),
        [hostile]: text({}),
      },
    },
    uiSchema: {
      type: 'VerticalLayout',
      elements: [
        { type: 'HelpContent', label: hostile, options: { help: hostile, markdown: true } },
        { type: 'HelpContent', label: 'Link', options: { variant: 'hyperlink', link: 'javascript:document.title=1' } },
        { type: 'HelpContent', label: 'Image', options: { variant: 'img', src: 'https://example.org/x.png' } },
        ...['a', 'b', 'c', hostile].map((name) => ({
          type: 'Control',
          scope: `#/properties/${name.replaceAll('/', '~1')}`,
        })),
        {
          type: 'Control',
          scope: '#/properties/d',
          options: { register: { urn: 'urn:x:/configuration/data-register/r' } },
        },
      ],
    },
  };
  const { page } = await open({ definition, entries: [{ value: hostile, label: hostile }] });
  await begin(page);
  await page.setInputFiles('input[type=file]', {
    name: hostile.replaceAll('/', ''),
    mimeType: 'text/html',
    buffer: Buffer.from('x'),
  });
  await page.getByText('was added').first().waitFor();
  for (const input of await page.locator('input[type=text]').all()) await input.fill(hostile);
  for (const select of await page.locator('select').all()) await select.selectOption({ index: 1 });
  await next(page);
  await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
  await page.getByRole('button', { name: 'Send the form' }).click();
  await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
  await expect.poll(() => page.locator('main img, main b, main script').count()).toBe(0);
  await expect.poll(() => page.title()).toContain(hostile);
});

test('a stored answer cannot be lost by a click while the list that it comes from is loading', async () => {
  const definition = {
    ...simple,
    dataSchema: { properties: { town: { type: 'string', title: 'Town' } } },
    uiSchema: {
      type: 'Control',
      scope: '#/properties/town',
      options: { register: { urn: 'urn:x:/configuration/data-register/towns' } },
    },
  };
  const answers = { 'GET data': { status: 200, body: { data: { town: 'b' }, files: {} }, headers: { ETag: '"1"' } } };
  const script = { definition, entries: ['a', 'b'].map((value) => ({ value, label: `Town ${value}` })) };
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { page } = await open({ ...script, answers, ...inDraft }, {}, `${asForm}&page=1`, (opening) =>
    opening.route('**/registers/**', async (route) => {
      await released;
      await route.fallback();
    }),
  );
  await expect.poll(() => page.getByLabel('Town').isDisabled()).toBe(true);
  release();
  await expect.poll(() => page.getByLabel('Town').isEnabled()).toBe(true);
  await expect.poll(() => page.locator('option:checked').textContent()).toBe('Town b');
});

describe('a list of choices from a register', () => {
  const withRegister = (options: object, schema: object) => ({
    ...simple,
    dataSchema: { properties: { towns: { title: 'Towns', ...schema } } },
    uiSchema: {
      type: 'Control',
      scope: '#/properties/towns',
      options: { register: { urn: 'urn:x:/configuration/data-register/towns' }, ...options },
    },
  });
  const towns = (count: number) => Array.from({ length: count }, (_, index) => `Town ${index}`);
  const many = { type: 'array', items: { type: 'string' } };

  it('that could not be loaded can be loaded again with a button that keeps its name, and then gets the focus', async () => {
    const script: ScriptedIntake = {
      definition: withRegister({}, { type: 'string' }),
      entries: towns(3),
      answers: { 'GET entries': { status: 404, body: {} } },
    };
    const { page } = await open(script, { bypassCSP: true });
    await begin(page);
    const group = page.getByRole('group', { name: 'Towns' });
    await group.getByRole('status').getByText('The list of answers could not be loaded.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    script.answers = {};
    await group.getByRole('button', { name: 'Try again now' }).click();
    await page.locator('select:focus').waitFor();
  });

  it('says that it is loading, as boxes too', async () => {
    const gate = Promise.withResolvers<void>();
    const { page } = await open({ definition: withRegister({}, many), entries: towns(3) }, {}, '', (opening) =>
      opening.route('**/registers/**', (route) => gate.promise.then(() => route.fallback())),
    );
    await begin(page);
    await page.getByRole('group', { name: 'Towns' }).getByText('Loading').waitFor();
    gate.resolve();
    await page.getByLabel('Town 2').check();
  });

  it('that is very long is searched, and the boxes that are ticked stay', async () => {
    const script: ScriptedIntake = { definition: withRegister({}, many), entries: towns(3_000) };
    const { page } = await open(script, { bypassCSP: true });
    await begin(page);
    await page.getByRole('checkbox').first().waitFor();
    expect(await page.getByRole('checkbox').count()).toBe(100);
    const search = page.getByLabel('Search in this list');
    for (const town of ['Town 2999', 'Town 2998']) {
      await search.fill(town);
      await page.getByLabel(town).check();
    }
    await expect.poll(() => page.getByRole('checkbox').count()).toBe(2);
    await search.press('Enter');
    await expect.poll(() => script.saved).toEqual({ data: { towns: ['Town 2999', 'Town 2998'] }, files: {} });
    expect(await faultsOf(page)).toEqual([]);
  });

  it('that is very long is searched instead of shown as radio buttons', async () => {
    const { page } = await open({ definition: withRegister({ radio: true }, { type: 'string' }), entries: towns(101) });
    await begin(page);
    await page.getByRole('combobox', { name: 'Towns' }).waitFor();
    expect(await page.getByRole('radio').count()).toBe(0);
  });
});

it('an answer to an optional question with radio buttons can be removed, that to a required one cannot', async () => {
  const choice = (title: string) => ({ type: 'string', title, enum: ['One', 'Two'] });
  const properties = { may: choice('May'), must: choice('Must') };
  const elements = ['may', 'must'].map((name) => ({
    ...{ type: 'Control', scope: `#/properties/${name}`, options: { radio: true } },
  }));
  const script: ScriptedIntake = {
    definition: {
      ...simple,
      dataSchema: { type: 'object', required: ['must'], properties },
      uiSchema: { type: 'VerticalLayout', elements },
    },
  };
  const { page } = await open(script, { bypassCSP: true });
  await begin(page);
  for (const name of ['May', 'Must']) await page.getByRole('group', { name }).getByLabel('Two').check();
  await expect.poll(() => script.saved).toEqual({ data: { may: 'Two', must: 'Two' }, files: {} });
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('button', { name: /^Remove this answer.*May$/ }).click();
  await expect.poll(() => script.saved).toEqual({ data: { must: 'Two' }, files: {} });
  await page.getByRole('group', { name: 'May' }).locator('input:focus').waitFor();
  expect(await page.getByRole('button', { name: 'Remove this answer' }).count()).toBe(0);
});

it('a file that is too large is refused before it is sent, and the question says how large a file may be', async () => {
  const dataSchema = { properties: { plan: { type: 'string', format: 'file-urn', title: 'Plan' } } };
  const definition = { ...simple, files: true, fileLimit: 1_572_864, dataSchema };
  const { page } = await open({ definition });
  let sent = 0;
  page.on('request', (request) => {
    if (request.url().includes('/files?')) sent += 1;
  });
  await begin(page);
  await page.getByText('At most 1.5 MB per file').waitFor();
  const file = (size: number) => ({ name: 'plan.pdf', mimeType: 'application/pdf', buffer: Buffer.alloc(size) });
  await page.locator('input[type=file]').setInputFiles(file(1_572_865));
  await page.getByText('plan.pdf is too large. Choose a smaller file').first().waitFor();
  expect(sent).toBe(0);
  await page.locator('input[type=file]').setInputFiles(file(1_572_864));
  await page.getByText('plan.pdf was added.').first().waitFor();
});

describe('files that are still being sent', () => {
  const withFiles = (questions: Record<string, object>) => ({
    ...{ ...simple, files: true },
    dataSchema: {
      properties: {
        name: { type: 'string', title: 'Your name' },
        ...Object.fromEntries(
          Object.keys(questions).map((title) => [title, { type: 'string', format: 'file-urn', title }]),
        ),
      },
    },
    uiSchema: {
      type: 'VerticalLayout',
      elements: Object.entries({ name: {}, ...questions }).map(([name, componentProps]) => ({
        ...{ type: 'Control', scope: `#/properties/${name}`, options: { componentProps } },
      })),
    },
  });
  const urnOf = (name: string) => `urn:x:/files/${name}`;

  /** Holds each upload back until the returned function is called with the name of its file. */
  async function holdUploads(page: Page): Promise<(name: string) => void> {
    const gates = new Map<string, PromiseWithResolvers<void>>();
    const gateOf = (name: string) => {
      const gate = gates.get(name) ?? Promise.withResolvers<void>();
      gates.set(name, gate);
      return gate;
    };
    await page.route('**/files?name=*', async (route) => {
      const name = new URL(route.request().url()).searchParams.get('name') ?? '';
      await gateOf(name).promise;
      await route.fulfill({ status: 201, json: { urn: urnOf(name), name } });
    });
    return (name) => gateOf(name).resolve();
  }

  const fileNamed = (name: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) });
  const choose = (page: Page, question: string, name: string) =>
    page.getByRole('group', { name: question }).locator('input[type=file]').setInputFiles(fileNamed(name));

  it('are added to what was sent and removed in the meantime, in the order in which they were chosen', async () => {
    const script: ScriptedIntake = { definition: withFiles({ Documents: { multiple: true }, Plan: {} }) };
    const { page } = await open(script, { bypassCSP: true });
    const release = await holdUploads(page);
    await begin(page);
    await choose(page, 'Documents', 'old');
    release('old');
    await page.getByText('old was added.').first().waitFor();
    await choose(page, 'Documents', 'big');
    await choose(page, 'Documents', 'small');
    await choose(page, 'Plan', 'first');
    await choose(page, 'Plan', 'second');
    await expect
      .poll(() => page.getByText(/^Sending/).allTextContents())
      .toEqual(['Sending big…', 'Sending small…', 'Sending first…', 'Sending second…']);
    expect(await faultsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Remove old' }).click();
    await page.getByText('old was removed.').first().waitFor();
    await page.getByRole('group', { name: 'Documents' }).locator('input[type=file]:focus').waitFor();
    for (const name of ['second', 'first', 'small']) release(name);
    await page.getByRole('button', { name: 'Remove second' }).waitFor();
    release('big');
    await page.getByRole('button', { name: 'Remove small' }).waitFor();
    await expect
      .poll(() => script.saved)
      .toEqual({
        data: { Documents: `${urnOf('big')};${urnOf('small')}`, Plan: urnOf('second') },
        // `second` has replaced `first`, because the question takes one file.
        files: Object.fromEntries(['second', 'big', 'small'].map((name) => [name, urnOf(name)])),
      });
  });

  it('can be chosen together where a question takes several, and are sent in their order', async () => {
    const script: ScriptedIntake = { definition: withFiles({ Documents: { multiple: true }, Plan: {} }) };
    const { page } = await open(script, { bypassCSP: true });
    const release = await holdUploads(page);
    await begin(page);
    const names = ['one', 'two', 'three'];
    await page.getByLabel('Choose files').setInputFiles(names.map(fileNamed));
    for (const name of names.toReversed()) release(name);
    for (const name of names) await page.getByRole('button', { name: `Remove ${name}` }).waitFor();
    await expect
      .poll(() => script.saved)
      .toEqual({
        data: { Documents: names.map(urnOf).join(';') },
        files: Object.fromEntries(names.map((name) => [name, urnOf(name)])),
      });
    expect(await page.getByLabel('Choose a file').getAttribute('multiple')).toBeNull();
  });

  it('stay with the item of a list for which they were chosen, and are left out if it is removed', async () => {
    const proof = { type: 'string', format: 'file-urn', title: 'Proof' };
    const items = { type: 'object', properties: { owner: { type: 'string', title: 'Owner' }, proof } };
    const dataSchema = { properties: { owners: { type: 'array', title: 'Owners', items } } };
    const script: ScriptedIntake = { definition: { ...simple, files: true, dataSchema } };
    const { page } = await open(script);
    const release = await holdUploads(page);
    await begin(page);
    for (const [index, name] of ['Ana', 'Bo', 'Cy'].entries()) {
      await page.getByRole('button', { name: /^Add to: Owners/ }).click();
      await page
        .getByLabel(/^Owner /)
        .nth(index)
        .fill(name);
    }
    await page.locator('input[type=file]').nth(1).setInputFiles(fileNamed('of-bo'));
    await page.locator('input[type=file]').nth(2).setInputFiles(fileNamed('of-cy'));
    await page.getByRole('button', { name: /^Remove Owners.*number 2$/ }).click();
    await expect.poll(() => page.getByText(/^Sending/).allTextContents()).toEqual(['Sending of-cy…']);
    for (const name of ['of-bo', 'of-cy']) release(name);
    await page.getByRole('button', { name: 'Remove of-cy' }).waitFor();
    await expect
      .poll(() => script.saved)
      .toEqual({
        data: { owners: [{ owner: 'Ana' }, { owner: 'Cy', proof: urnOf('of-cy') }] },
        files: { 'of-cy': urnOf('of-cy') },
      });
  });

  it('are shown on the other pages, where the browser warns, and the form is sent only with them', async () => {
    const script: ScriptedIntake = { definition: withFiles({ Plan: {} }) };
    const { page } = await open(script, { bypassCSP: true });
    const release = await holdUploads(page);
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await choose(page, 'Plan', 'slow');
    await next(page);
    await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
    await page.locator('[data-state=saved]').waitFor();
    await page.getByRole('status').getByText('1 file is being sent. Keep this page open.').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    const dialog = page.waitForEvent('dialog');
    await page.close({ runBeforeUnload: true });
    await (await dialog).dismiss();
    let savedAtSubmission: unknown;
    page.on('request', (request) => {
      if (request.url().endsWith('/submission')) savedAtSubmission = script.saved;
    });
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('button', { name: 'Sending the form…' }).waitFor();
    release('slow');
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
    await expect.poll(() => page.locator('main').textContent()).toContain('slow');
    expect(savedAtSubmission).toEqual({ data: { name: 'Ana', Plan: urnOf('slow') }, files: { slow: urnOf('slow') } });
  });

  it('are not missing when the person continues, and a question without a file still is', async () => {
    const definition = withFiles({ Plan: {}, Photo: {} });
    const dataSchema = { ...definition.dataSchema, type: 'object', required: ['Plan', 'Photo'] };
    const { page } = await open({ definition: { ...definition, dataSchema } });
    const release = await holdUploads(page);
    await begin(page);
    await choose(page, 'Plan', 'slow');
    await page.getByText('Sending slow…').waitFor();
    await next(page);
    await page.locator('.error-summary:focus').waitFor();
    await expect.poll(() => page.locator('.error-summary a').allTextContents()).toEqual(['Add a file for “Photo”']);
    await choose(page, 'Photo', 'photo');
    await next(page);
    await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
    for (const name of ['slow', 'photo']) release(name);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
  });

  it('do not end the form after “Leave this computer” if the person fills in another step in the meantime', async () => {
    const plain = withFiles({ Plan: {} });
    const category = (label: string, name: string) => ({
      ...{ type: 'Category', label },
      elements: [{ type: 'Control', scope: `#/properties/${name}` }],
    });
    const elements = [category('First step', 'Plan'), category('Second step', 'name')];
    const definition = { ...plain, uiSchema: { type: 'Categorization', elements } };
    const script: ScriptedIntake = { definition, ...inDraft };
    const { page } = await open(script, {}, `${asForm}&page=1`);
    let forgotten = 0;
    page.on('request', (request) => {
      if (request.method() === 'DELETE') forgotten += 1;
    });
    const send = await holdUploads(page);
    await choose(page, 'Plan', 'plan.txt');
    await page.getByRole('button', { name: 'Leave this computer' }).click();
    await page.getByText('Your files are being sent.').waitFor();
    await page.getByRole('button', { name: 'Second step' }).click();
    await page.getByLabel('Your name').fill('Ana');
    send('plan.txt');
    await expect.poll(() => script.saved).toMatchObject({ data: { Plan: urnOf('plan.txt'), name: 'Ana' } });
    // When the second change is saved, the save that leaving waited for has long been handled.
    await page.getByLabel('Your name').fill('Ana Maria');
    await expect.poll(() => script.saved).toMatchObject({ data: { name: 'Ana Maria' } });
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Second step');
    expect(forgotten).toBe(0);
  });

  it('ask for a code if the cookie has expired, and are sent after it was entered', async () => {
    const answers: ScriptedIntake['answers'] = { 'POST files': { status: 401, body: {} } };
    const { page } = await open({ definition: withFiles({ Plan: {} }), answers });
    await begin(page);
    await choose(page, 'Plan', 'plan');
    await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
    delete answers['POST files'];
    await page.getByLabel('Code', { exact: true }).fill('abc123');
    await page.getByRole('button', { name: 'Open my form' }).click();
    await page.getByRole('button', { name: 'Remove plan' }).waitFor();
  });

  it('and cannot be sent are named on every page, and the person sends them again or goes on without them', async () => {
    const script: ScriptedIntake = { definition: withFiles({ Plan: {}, Photo: {} }) };
    const { page } = await open(script, { bypassCSP: true });
    await page.route('**/files?name=*', (route) => route.abort());
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await choose(page, 'Plan', 'plan');
    await choose(page, 'Photo', 'photo');
    await next(page);
    await page.getByRole('status').getByText('plan could not be sent. Try again').waitFor();
    await page.getByRole('button', { name: 'Leave this computer' }).click();
    await page.getByText('A file could not be sent.').waitFor();
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.locator('.error-summary:focus').getByText('photo could not be sent. Try again').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.unroute('**/files?name=*');
    await page.getByRole('button', { name: 'Go on without photo' }).click();
    await page.getByRole('button', { name: 'Send plan again' }).click();
    await page.getByText('plan was added.').first().waitFor();
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
    expect(Object.keys((script.saved as { files: object }).files)).toEqual(['plan']);
  });

  it('are kept if they arrive while a person chooses between the answers of two windows', async () => {
    const theirs = { status: 200, body: { data: { name: 'Theirs' }, files: {} }, headers: { ETag: '"2"' } };
    const script: ScriptedIntake = { definition: withFiles({ Documents: {} }), answers: { 'GET data': theirs } };
    const { page } = await open(script);
    const release = await holdUploads(page);
    await begin(page);
    await choose(page, 'Documents', 'late');
    await page.route('**/data', (route) => route.fulfill({ status: 412, json: {} }), { times: 1 });
    await page.getByLabel('Your name').fill('Mine');
    await page.getByRole('heading', { name: 'Your form was changed in another window' }).waitFor();
    const arrived = page.waitForResponse('**/files?name=late');
    release('late');
    await (await arrived).finished();
    await page.getByLabel('Your answer here').check();
    await page.getByRole('button', { name: 'Keep the chosen answers' }).click();
    await page.getByRole('button', { name: 'Remove late' }).waitFor();
    await expect
      .poll(() => script.saved)
      .toEqual({ data: { name: 'Mine', Documents: urnOf('late') }, files: { late: urnOf('late') } });
  });
});

it('a number that may be negative gets a keyboard with a minus sign', async () => {
  const number = (title: string, bounds = {}) => ({ type: 'number', title, ...bounds });
  const properties = {
    rooms: { type: 'integer', title: 'Rooms' },
    income: number('Income', { minimum: 0 }),
    result: number('Result', { minimum: -1_000 }),
    degrees: number('Degrees', { exclusiveMinimum: -273 }),
  };
  const script: ScriptedIntake = { definition: { ...simple, dataSchema: { properties } } };
  const { page } = await open(script);
  await begin(page);
  const keyboards = ['Rooms', 'Income', 'Result', 'Degrees'].map((label) =>
    page.getByLabel(label).getAttribute('inputmode'),
  );
  expect(await Promise.all(keyboards)).toEqual(['numeric', 'decimal', 'text', 'text']);
  await page.getByLabel('Result').fill('−12,5');
  await expect.poll(() => script.saved).toMatchObject({ data: { result: -12.5 } });
});

it('a file with a very long name is stored under a shorter one, and announced by its own name', async () => {
  const dataSchema = { properties: { plan: { type: 'string', format: 'file-urn', title: 'Plan' } } };
  const script: ScriptedIntake = { definition: { ...simple, files: true, dataSchema } };
  const { page } = await open(script);
  const sent: (string | null)[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith('/files')) sent.push(searchParams.get('name'));
  });
  await begin(page);
  const long = 'x'.repeat(200);
  const file = { name: `${long}.pdf`, mimeType: 'application/pdf', buffer: Buffer.from('x') };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByText(`${long}.pdf was added.`).first().waitFor();
  const stored = `${'x'.repeat(146)}.pdf`;
  expect(sent).toEqual([stored]);
  await expect.poll(() => Object.keys((script.saved as { files: object } | undefined)?.files ?? {})).toEqual([stored]);
});

it('files of the same name from two windows are told apart by name, and only the chosen one is kept', async () => {
  const dataSchema = { properties: { plan: { type: 'string', format: 'file-urn', title: 'Plan' } } };
  const urnOf = (nr: number) => `urn:example:platform:file-service:v1:/files/${nr}`;
  const other = { data: { plan: urnOf(2) }, files: { 'plan.pdf': urnOf(2) } };
  const theirs = { status: 200, body: other, headers: { ETag: '"2"' } };
  const script: ScriptedIntake = {
    ...{ definition: { ...simple, files: true, dataSchema } },
    answers: { 'GET data': theirs },
  };
  const { page } = await open(script, { bypassCSP: true });
  await begin(page);
  await page.route('**/data', (route) => route.fulfill({ status: 412, json: {} }), { times: 1 });
  const file = { name: 'plan.pdf', mimeType: 'application/pdf', buffer: Buffer.from('x') };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByRole('heading', { name: 'Your form was changed in another window' }).waitFor();
  await expect
    .poll(() => page.getByRole('group').locator('strong').allTextContents())
    .toEqual([...['plan.pdf (2)', 'plan.pdf']]);
  expect(await faultsOf(page)).toEqual([]);
  await page.getByLabel('Your answer here').check();
  await page.getByRole('button', { name: 'Keep the chosen answers' }).click();
  await expect.poll(() => script.saved).toEqual({ data: { plan: urnOf(1) }, files: { 'plan.pdf': urnOf(1) } });
});

it('items of a list that two windows have changed are shown without names of members and URNs', async () => {
  const properties = { owner: { type: 'string', title: 'Owner' }, local: { type: 'boolean', title: 'Local' } };
  const items = { type: 'object', properties: { ...properties, proof: { type: 'string', format: 'file-urn' } } };
  const dataSchema = { properties: { owners: { type: 'array', title: 'Owners', items } } };
  const urn = 'urn:example:platform:file-service:v1:/files/2';
  const theirs = { data: { owners: [{ owner: 'Bo', local: true, proof: urn }] }, files: { 'id.pdf': urn } };
  const { page } = await open({
    ...{ definition: { ...simple, files: true, dataSchema } },
    answers: { 'GET data': { status: 200, body: theirs, headers: { ETag: '"2"' } } },
  });
  await begin(page);
  await page.route('**/data', (route) => route.fulfill({ status: 412, json: {} }), { times: 1 });
  await page.getByRole('button', { name: /^Add to: Owners/ }).click();
  await page.getByLabel(/^Owner /).fill('Ana');
  await page.getByRole('heading', { name: 'Your form was changed in another window' }).waitFor();
  await expect
    .poll(() => page.getByRole('group').locator('strong').allTextContents())
    .toEqual([...['Ana', 'Bo, Yes, id.pdf']]);
});

it('a file that the file service refuses is named as such, and not offered again', async () => {
  const dataSchema = { properties: { plan: { type: 'string', format: 'file-urn', title: 'Plan' } } };
  const answers = { 'POST files': { status: 400, body: { type: 'urn:formgate:problem:invalid-request' } } };
  const { page } = await open({ definition: { ...simple, files: true, dataSchema }, answers });
  await begin(page);
  const file = { name: 'plan.exe', mimeType: 'application/pdf', buffer: Buffer.from('x') };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByText('plan.exe is not accepted here. Choose another file').first().waitFor();
  expect(await page.getByRole('button', { name: 'Send plan.exe again' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Go on without plan.exe' }).click();
});

it('a name that the service refuses is named at its field on the start page', async () => {
  const errors = [{ pointer: '/name', detail: 'must have at most 200 characters' }];
  const answers = { 'POST forms': { status: 400, body: { type: 'urn:formgate:problem:invalid-request', errors } } };
  const { page } = await open({ definition: simple, answers }, { bypassCSP: true });
  await page.getByLabel('Your email address').fill('ana@example.org');
  await page.getByLabel('Your name').fill('x'.repeat(300));
  await page.getByRole('button', { name: 'Start now' }).click();
  await page.getByRole('link', { name: 'Enter your name in at most 100 characters' }).click();
  await page.locator('#name:focus[aria-invalid=true]').waitFor();
  expect(await faultsOf(page)).toEqual([]);
});

it('yes and no have the words of the definition, on the page and in the summary', async () => {
  const home = {
    type: 'boolean',
    title: 'Home',
    oneOf: [
      { const: true, title: 'Own' },
      { const: false, title: 'Rent' },
    ],
  };
  const terms = { type: 'boolean', title: 'Terms' };
  const options = { radio: true, textForTrue: 'I agree', textForFalse: 'I do not agree' };
  const dataSchema = { properties: { home, terms } };
  const elements = ['home', 'terms'].map((name) => ({ type: 'Control', scope: `#/properties/${name}`, options }));
  const { page } = await open({
    definition: { ...simple, dataSchema, uiSchema: { type: 'VerticalLayout', elements } },
  });
  await begin(page);
  await page.getByLabel('Rent').check();
  await page.getByLabel('I agree').check();
  await next(page);
  await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
  const answers = await page.locator('dl.answers div dd:nth-of-type(1)').allTextContents();
  expect(answers).toEqual(['Rent', 'I agree']);
});

it('a form whose pages are all hidden says so, and can be sent or deleted', async () => {
  const rule = { effect: 'SHOW', condition: { scope: '#/properties/name', schema: { const: 'Ana' } } };
  const uiSchema = {
    type: 'Categorization',
    elements: [{ type: 'Category', label: 'About', rule, elements: [{ type: 'Control', scope: '#/properties/note' }] }],
  };
  const dataSchema = { properties: simple.dataSchema.properties };
  const script: ScriptedIntake = { definition: { ...simple, dataSchema, uiSchema }, ...inDraft };
  const { page } = await open(script, { bypassCSP: true }, `${asForm}&page=1`);
  await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
  await page.getByText('There are no questions for you to answer here.').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Back', exact: true }).count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Delete this draft' }).click();
  await page.getByRole('button', { name: 'No, keep my draft' }).click();
  await page.getByRole('button', { name: 'Send the form' }).click();
  await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
});

it('questions about the person tell browsers and assistive software what they ask for', async () => {
  const text = { type: 'string' };
  const names = {
    ...{ note: text, street: text, lastName: text, age: { type: 'integer' } },
    ...{ country: { enum: ['CA', 'FR'] }, born: { ...text, format: 'date' } },
    ...{ home: { enum: countries.map(({ label }) => label) }, other: { enum: countries.map(({ label }) => label) } },
  };
  const purposes: Record<string, string> = {
    ...{ street: 'street-address', age: 'off', country: 'country', born: 'bday', home: 'country-name' },
  };
  const elements = Object.keys(names).map((name) => ({
    ...{ type: 'Control', scope: `#/properties/${name}` },
    ...(purposes[name] && { options: { autocomplete: purposes[name], multi: name === 'street' } }),
  }));
  const uiSchema = { type: 'VerticalLayout', elements };
  const definition = { ...simple, dataSchema: { properties: names }, uiSchema };
  const { page } = await open({ definition }, { bypassCSP: true });
  await begin(page);
  const attributes = page.locator('main :is(input, select, textarea)');
  expect(await attributes.evaluateAll((all) => all.map((one) => one.getAttribute('autocomplete')))).toEqual([
    ...[null, 'street-address', 'family-name', 'off', 'country'],
    ...['bday-day', 'bday-month', 'bday-year', 'country-name', 'off'],
  ]);
  expect(await faultsOf(page)).toEqual([]);
});

describe('a field that searches a long list', () => {
  const country = { type: 'string', title: 'Country', enum: countries.map(({ label }) => label) };
  const shownIn = (page: Page) =>
    page.getByRole('combobox').evaluateAll((all) => all.map((input) => Reflect.get(input, 'value')));

  it('shows the answer of its own item after another item was removed, and what was typed there', async () => {
    const items = { type: 'object', properties: { country } };
    const definition = { ...simple, dataSchema: { properties: { visits: { type: 'array', title: 'Visits', items } } } };
    const script: ScriptedIntake = { definition };
    const { page } = await open(script);
    await begin(page);
    for (const [index, text] of ['Canada', 'Country 5', 'nowhere'].entries()) {
      await page.getByRole('button', { name: /^Add to: Visits/ }).click();
      await page.getByRole('combobox').nth(index).fill(text);
      await page.keyboard.press('Tab');
    }
    await page.getByRole('button', { name: /^Remove Visits.*number 1$/ }).click();
    await expect.poll(() => shownIn(page)).toEqual(['Country 5', 'nowhere']);
    await page.getByRole('button', { name: /^Remove Visits.*number 1$/ }).click();
    await expect.poll(() => shownIn(page)).toEqual(['nowhere']);
    await page.getByRole('combobox').fill('canada');
    await expect.poll(() => script.saved).toEqual({ data: { visits: [{ country: 'Canada' }] }, files: {} });
  });

  it('shows at most 100 choices before anything is typed, and all that match are found', async () => {
    const answers = Array.from({ length: 3_000 }, (_, index) => `Town ${index}`);
    const definition = {
      ...simple,
      dataSchema: { properties: { town: { type: 'string', title: 'Town', enum: answers } } },
    };
    const script: ScriptedIntake = { definition };
    const { page } = await open(script);
    await begin(page);
    const box = page.getByRole('combobox');
    await box.click();
    await page.getByRole('option').first().waitFor();
    expect(await page.getByRole('option').count()).toBe(100);
    await box.fill('Town 2999');
    await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['Town 2999']);
    await box.fill('');
    await expect.poll(() => page.getByRole('option').count()).toBe(100);
  });

  it('says when it is left that a text which is not in the list is no answer', async () => {
    const { page } = await open(
      { definition: { ...simple, dataSchema: { properties: { country } } } },
      { bypassCSP: true },
    );
    await begin(page);
    const input = page.getByRole('combobox');
    const problem = page.getByText('This is not in the list, so it is not saved.');
    await input.fill('Cana');
    expect(await problem.count()).toBe(0);
    await page.keyboard.press('Tab');
    await problem.waitFor();
    await page.locator('[role=combobox][aria-invalid=true]').waitFor();
    expect(await input.getAttribute('aria-describedby')).toContain(await problem.getAttribute('id'));
    expect(await faultsOf(page)).toEqual([]);
    await input.fill('Canada');
    await page.keyboard.press('Tab');
    await expect.poll(() => problem.count()).toBe(0);
  });

  it('does not drop a text that is not in the list when the person continues: the summary names it', async () => {
    const { page } = await open(
      { definition: { ...simple, dataSchema: { properties: { country } } } },
      { bypassCSP: true },
    );
    await begin(page);
    const input = page.getByRole('combobox');
    const message = 'What you typed for “Country” is not in the list. Choose an answer from the list';
    const go = { Cana: () => page.keyboard.press('Enter'), Nowhere: () => next(page) };
    for (const [text, press] of Object.entries(go)) {
      await input.fill(text);
      await press();
      await page.locator('.error-summary:focus').waitFor();
      await expect.poll(() => page.locator('.error-summary a').allTextContents()).toEqual([message]);
      await expect.poll(() => page.locator('.field .error').allTextContents()).toEqual([`Error: ${message}`]);
      await expect.poll(() => page.title()).toMatch(/^Error: /);
      expect(await input.inputValue()).toBe(text);
    }
    expect(await faultsOf(page)).toEqual([]);
    await page.locator('.error-summary a').click();
    await input.fill('Canada');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
  });

  it('has a text that is not in the list again on the way back, and the form is not sent with it', async () => {
    const message = 'What you typed for “Country” is not in the list. Choose an answer from the list';
    const pages = ['Where', 'Note'].map((label, index) => ({
      ...{ type: 'Category', label },
      elements: [{ type: 'Control', scope: `#/properties/${['country', 'note'][index]}` }],
    }));
    const script: ScriptedIntake = {
      definition: {
        ...simple,
        dataSchema: { properties: { country, note: { type: 'string' } } },
        uiSchema: { type: 'Categorization', elements: pages },
      },
    };
    const { page } = await open(script);
    await begin(page);
    const input = page.getByRole('combobox');
    await input.fill('Nowhere');
    await page.getByRole('button', { name: 'Note' }).click();
    await page.getByRole('button', { name: 'Back' }).click();
    await expect.poll(() => input.inputValue()).toBe('Nowhere');
    await page.getByText('This is not in the list, so it is not saved.').waitFor();
    // Back to the start page, and forward again.
    for (let steps = 0; steps < 3; steps += 1) await page.goBack();
    await page.getByRole('button', { name: 'Start now' }).waitFor();
    await page.goForward();
    await expect.poll(() => input.inputValue()).toBe('Nowhere');
    await page.getByRole('button', { name: 'Check your answers' }).click();
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('link', { name: message }).click();
    await expect.poll(() => input.inputValue()).toBe('Nowhere');
    await expect.poll(() => page.locator('.field .error').allTextContents()).toEqual([`Error: ${message}`]);
    await input.fill('Canada');
    await page.getByRole('button', { name: 'Check your answers' }).click();
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
  });

  it('shows the answer that another window has saved', async () => {
    const note = { type: 'string', title: 'Note' };
    const definition = { ...simple, dataSchema: { properties: { country, note } } };
    const theirs = { status: 200, body: { data: { country: 'Country 5' }, files: {} }, headers: { ETag: '"3"' } };
    const script: ScriptedIntake = { definition, answers: { 'GET data': theirs } };
    const { page } = await open(script);
    await begin(page);
    await page.getByRole('combobox').fill('canada');
    await page.keyboard.press('Tab');
    await expect.poll(() => script.saved).toEqual({ data: { country: 'Canada' }, files: {} });
    await expect.poll(() => shownIn(page)).toEqual(['canada']);
    await page.route('**/data', (route) => route.fulfill({ status: 412, json: {} }), { times: 1 });
    await page.getByLabel(/^Note/).fill('Soon');
    await expect.poll(() => shownIn(page)).toEqual(['Country 5']);
    await expect.poll(() => script.saved).toEqual({ data: { country: 'Country 5', note: 'Soon' }, files: {} });
  });
});

// This test failed in one of 25 runs on a busy machine while the page began to listen for address changes only after
// its first paint.
test('an address that changes as soon as the page is loaded is followed', async () => {
  const { page } = await open({ definition: simple, ...inDraft });
  await page.goto(`${app.url}/apply/demo/form${asForm}&page=1`);
  await page.getByLabel('Your name').waitFor();
});

const folder = join(import.meta.dirname, '../../fixtures/definitions');
test.each(readdirSync(folder))('the questions of %s are shown, without violations', async (file) => {
  const { definition, valid } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const answers = { 'GET data': { status: 200, body: { data: valid.at(-1), files: {} }, headers: { ETag: '"1"' } } };
  const script = {
    definition: { ...simple, ...definition, files: true, dataSchema: bundledSchema(definition.dataSchema) },
    entries: countries,
    answers,
    ...inDraft,
  };
  const { page } = await open(script, { bypassCSP: true, viewport: { width: 320, height: 640 } }, `${asForm}&page=1`);
  await page.locator('main form').locator('input, select, textarea').first().waitFor();
  await expect.poll(() => page.getByText('This part of the form cannot be shown.').count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
});

const views = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1024, height: 768 }, zoom: 1 },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1024, height: 768 }, zoom: 1 },
  { name: 'phone', colorScheme: 'dark', viewport: { width: 320, height: 640 }, zoom: 1 },
  { name: '200 %', colorScheme: 'light', viewport: { width: 640, height: 480 }, zoom: 2 },
] as const;

describe.each(viewsOfRun(views))('every page, $name', ({ colorScheme, viewport, zoom }) => {
  it('has no violation that axe finds, and fits the screen', async () => {
    const answers = {
      'GET data': {
        status: 200,
        body: {
          data: exampleFormData.complete,
          files: {},
        },
        headers: { ETag: '"1"' },
      },
    };
    const script: ScriptedIntake = { definition: licence, entries: countries, answers };
    const { page } = await open(script, { bypassCSP: true, colorScheme, viewport });
    const check = async (heading: string) => {
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await page.evaluate(`document.documentElement.style.fontSize = '${zoom * 100}%'`);
      expect([heading, await faultsOf(page)]).toEqual([heading, []]);
    };
    await check('Business licence');
    await page.getByRole('button', { name: 'Start now' }).click();
    await check('Business licence');
    await begin(page);
    await next(page);
    await check('The business');
    await page.reload();
    await check('Enter your code to go on');
    script.status = inDraft.status;
    await page.reload();
    await page.getByRole('button', { name: 'Where and who' }).click();
    await page.getByRole('combobox').click();
    await check('Where and who');
    await page.getByRole('button', { name: 'Check your answers' }).click();
    await check('Check your answers before you send your form');
    await page.getByRole('button', { name: 'Send the form' }).click();
    await check('We have received your form');
    await page.getByRole('button', { name: 'Close and hide my answers' }).click();
    await check('You have finished');
  });
});

test('errors of one page are not listed on another', async () => {
  const { page } = await open({ definition: licence, entries: countries, ...inDraft }, {}, `${asForm}&page=1`);
  await next(page);
  await page.locator('.error-summary:focus').waitFor();
  await page.getByRole('button', { name: 'Declaration' }).click();
  await page.getByLabel('What I have said here is true').waitFor();
  expect([await page.locator('.error-summary').count(), await page.title()]).toEqual([
    0,
    'Declaration – Business licence – Demo',
  ]);
});

test('a form can be filled in and sent by keyboard alone', async () => {
  const { page } = await open({ definition: { ...licence, files: false }, entries: countries });
  const focus = async (id: string) => {
    for (let presses = 0; presses < 40; presses += 1) {
      if (await page.evaluate(`document.activeElement.id.endsWith(${JSON.stringify(id)})`)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`The Tab key does not lead to ${id}.`);
  };
  const type = async (id: string, text: string) => {
    await focus(id);
    await page.keyboard.type(text);
  };
  await page.getByLabel('Your email address').waitFor();
  await type('email', 'ana@example.org');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'The business' }).waitFor();
  await type('businessName', 'Bakery');
  await type('structure', 'p');
  await type('activity', 'Bread');
  await type('startDate-day', '1');
  await type('startDate-month', '10');
  await type('startDate-year', '2026');
  await type('employees', '6');
  await focus('servesFood-0');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Where and who' }).waitFor();
  await type('street', '12 Aurora Avenue');
  await type('city', 'Whitehorse');
  await type('postalCode', 'Y1A 2C6');
  await type('country', 'cana');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await type('name', 'Ana');
  await type('contact:2Femail', 'ana@example.org');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Declaration' }).waitFor();
  await focus('declaration');
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Check your answers' }).waitFor();
});

test('the link to another form, opened over this one, never shows or saves the answers of this one there', async () => {
  const script: ScriptedIntake = { definition: simple };
  const { page } = await open(script);
  await begin(page);
  await page.getByLabel('Your name').fill('Ana');
  await page.locator('[data-state=saved]').waitFor();
  script.saved = undefined;
  await page.evaluate("location.hash = '#form=5b0f3c9e-0000-4000-8000-000000000000'");
  await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
  await page.goBack();
  await expect.poll(() => page.getByLabel('Your name').inputValue()).toBe('Ana');
  expect(script.saved).toBeUndefined();
});

describe('the link to a form of another definition, opened over this one', () => {
  const other = '5b0f3c9e-0000-4000-8000-000000000000';

  /** Begins a draft, and prepares a form of another definition. */
  async function beginWithOther() {
    const script: ScriptedIntake = { definition: simple };
    const { page } = await open(script, {}, '', (opened) =>
      opened.route('**/definitions/other', (route) => {
        const body = JSON.stringify({ ...simple, id: 'other', name: 'The other form' });
        return route.fulfill({ contentType: 'application/json', body });
      }),
    );
    await begin(page);
    script.status = { ...inDraft.status, id: other, definitionId: 'other' };
    return { page, script };
  }

  it('waits until the answers of this one are saved, and can be tried again', async () => {
    const { page, script } = await beginWithOther();
    script.answers = { 'PUT data': { status: 503, body: {} } };
    await page.getByLabel('Your name').fill('Ana');
    await page.evaluate(`location.hash = '#form=${other}'`);
    await page.getByRole('heading', { name: 'The page does not work right now' }).waitFor();
    await page.goBack();
    await expect.poll(() => page.getByLabel('Your name').inputValue()).toBe('Ana');
    await page.goForward();
    await page.getByRole('heading', { name: 'The page does not work right now' }).waitFor();
    script.answers = {};
    await page.getByRole('button', { name: 'Try again now' }).click();
    await page.waitForURL('**/apply/demo/other#*');
    await expect.poll(() => page.title()).toContain('The other form');
    expect(script.saved).toEqual({ data: { name: 'Ana' }, files: {} });
  });
});

describe('the browser’s buttons Back and Forward', () => {
  it('lead to the receipt again after the form was sent', async () => {
    const { page } = await open({ definition: simple });
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
    for (let steps = 0; steps < 2; steps += 1) await page.goBack();
    await page.getByRole('button', { name: 'Start now' }).waitFor();
    await page.goForward();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
    await page.getByText('K7QM-3XPD').waitFor();
  });

  it('lead to no answers after the receipt was closed, whose page does not speak of a draft', async () => {
    const { page } = await open({ definition: simple }, { bypassCSP: true });
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await next(page);
    await page.getByRole('button', { name: 'Send the form' }).click();
    await page.getByRole('heading', { name: 'We have received your form' }).waitFor();
    expect(await page.getByRole('button', { name: 'Leave this computer' }).count()).toBe(0);
    await page.route('**/cookie', (route) => route.abort(), { times: 1 });
    await page.getByRole('button', { name: 'Close and hide my answers' }).click();
    await page.getByText('The connection does not work right now.').waitFor();
    await page.getByRole('button', { name: 'Close and hide my answers' }).click();
    await page.getByRole('heading', { name: 'You have finished' }).waitFor();
    expect(await page.locator('main').textContent()).not.toContain('link in the email');
    expect(await faultsOf(page)).toEqual([]);
    await page.goBack();
    await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
  });

  it('lead to no answers after the form was left or has ended', async () => {
    const answers: ScriptedIntake['answers'] = {};
    const { page } = await open({ definition: simple, answers });
    await begin(page);
    await page.getByLabel('Your name').fill('Ana');
    await next(page);
    await page.getByRole('button', { name: 'Leave this computer' }).click();
    await page.getByRole('heading', { name: 'This computer has forgotten your form' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
    await page.goBack();
    await begin(page);
    answers['PUT data'] = { status: 410, body: {} };
    await page.getByLabel('Your name').fill('Ana');
    const asked = page.waitForResponse((response) => response.url().endsWith(`/forms/${scriptedForm}`));
    await page.goBack();
    await page.getByRole('button', { name: 'Start now' }).waitFor();
    await (await asked).finished();
    await page.goForward();
    await page.getByRole('heading', { name: 'Enter your code to go on' }).waitFor();
  });
});
