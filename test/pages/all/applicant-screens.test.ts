// Tests every state of the applicant's pages: axe finds no violation, and the page fits the screen. `npm run screens`
// also takes a picture of each state.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { businessLicence, exampleFormData } from '../../../dev/demo-data/business-licence.ts';
import { pageRoutes } from '../../../src/forms/pages/routes.ts';
import { createUrns } from '../../../src/service/urn.ts';
import { buildPages } from '../../../web/build.ts';
import { screensFolder } from '../../screens/screen-index.ts';
import { smallPng } from '../../screens/small-png.ts';
import { launchChromium } from '../../support/chromium.ts';
import { type ListeningApp, startApp } from '../../support/listening-app.ts';
import { faultsOf, openPage } from '../applicant-world.ts';
import { type ScriptedIntake, scriptedForm, scriptIntake } from '../scripted-intake.ts';
import { viewsOfRun } from '../selection.ts';

const isWriting = process.env.FORMGATE_WRITE_SCREENS !== undefined;
const index = join(screensFolder, 'applicant.md');

const desktop = { width: 800, height: 700 };
const views = [
  { name: 'light', colorScheme: 'light', viewport: desktop },
  { name: 'dark', colorScheme: 'dark', viewport: desktop },
  { name: 'phone', colorScheme: 'light', viewport: { width: 320, height: 640 } },
] as const;

const definition = {
  ...businessLicence(createUrns('urn:example'), 'http://forms.example.org'),
  ...{ tenantName: 'Demo', files: true, languages: ['en', 'fr'] },
};
const data = { ...exampleFormData.complete, address: { ...exampleFormData.complete.address, country: 'CA' } };
const countries = ['Canada', 'Cameroon', 'Cape Verde'].map((label) => ({
  value: label.slice(0, 2).toUpperCase(),
  label,
}));
const script = (more: Partial<ScriptedIntake> = {}): ScriptedIntake => ({
  definition,
  entries: [
    ...countries,
    ...Array.from({ length: 30 }, (_, number) => ({ value: `X${number}`, label: `Country ${number}` })),
  ],
  answers: { 'GET data': { status: 200, body: { data, files: {} }, headers: { ETag: '"1"' } } },
  status: { id: scriptedForm, status: 'Draft', readable: true },
  ...more,
});
const form = `#form=${scriptedForm}`;
const button = (page: Page, name: string) => page.getByRole('button', { name }).click();

interface Screen {
  name: string;
  title: string;
  fragment: string;
  script?: Partial<ScriptedIntake>;
  /** Brings the page into the state to show. */
  prepare?(page: Page): Promise<void>;
}

const inDraft = { 'GET data': { status: 200, body: { data, files: {} }, headers: { ETag: '"1"' } } };
const closed = { type: 'urn:formgate:problem:intake-closed', opens: '2027-01-01T12:00:00Z', closes: null };
const emptyDraft = { 'GET data': { status: 200, body: { data: {}, files: {} }, headers: { ETag: '"1"' } } };
const screens: Screen[] = [
  { name: 'apply-start', title: 'The start of a form', fragment: '' },
  { name: 'apply-questions', title: 'A page of questions', fragment: `${form}&page=1` },
  {
    name: 'apply-errors',
    title: 'A page with errors',
    fragment: `${form}&page=1`,
    script: { answers: emptyDraft },
    prepare: (page) => button(page, 'Continue'),
  },
  {
    name: 'apply-search',
    title: 'A long list of choices',
    fragment: `${form}&page=2`,
    async prepare(page) {
      await page.getByRole('combobox').fill('ca');
      await page.getByRole('option').first().waitFor();
    },
  },
  { name: 'apply-check', title: 'The summary before submission', fragment: `${form}&page=check` },
  {
    name: 'apply-receipt',
    title: 'The receipt',
    fragment: `${form}&page=check`,
    prepare: (page) => button(page, 'Send the form'),
  },
  {
    name: 'apply-code',
    title: 'Return with a code',
    fragment: form,
    script: { status: undefined },
  },
  {
    name: 'apply-locked',
    title: 'A locked draft',
    fragment: form,
    script: { status: { id: scriptedForm, status: 'Locked', readable: false, deleteOn: '2026-09-01T12:00:00Z' } },
  },
  {
    name: 'apply-sent',
    title: 'A form that was sent before',
    fragment: form,
    script: { status: { id: scriptedForm, status: 'Submitted', readable: false } },
  },
  {
    name: 'apply-closed',
    title: 'A form outside its intake window',
    fragment: '',
    script: { answers: { 'POST forms': { status: 409, body: closed } } },
    async prepare(page) {
      await page.getByLabel('Your email address').fill('ana@example.org');
      await button(page, 'Start now');
      await page.locator('.error-summary').waitFor();
    },
  },
  {
    name: 'apply-gone',
    title: 'A form that was deleted meanwhile',
    fragment: `${form}&page=1`,
    script: { answers: { ...inDraft, 'PUT data': { status: 410, body: { type: 'urn:formgate:problem:gone' } } } },
    async prepare(page) {
      await page.getByLabel('Name of the business').fill('Harbour Bakery');
      await page.getByRole('heading', { name: 'This form does not exist any more' }).waitFor();
    },
  },
  {
    name: 'apply-conflict',
    title: 'Answers that were changed in another window',
    fragment: `${form}&page=1`,
    script: { answers: { ...inDraft } },
    async prepare(page) {
      const name = page.getByLabel('Name of the business');
      await name.waitFor();
      await page.route('**/data', (route) => {
        const changed = { data: { ...data, businessName: 'Harbour Café' }, files: {} };
        const isSave = route.request().method() === 'PUT';
        return route.fulfill({
          status: isSave ? 412 : 200,
          headers: { ETag: '"2"' },
          json: isSave ? { type: 'urn:formgate:problem:changed' } : changed,
        });
      });
      await name.fill('Harbour Bakery and Shop');
      await page.getByRole('heading', { name: 'Your form was changed in another window' }).waitFor();
    },
  },
  {
    name: 'apply-delete',
    title: 'The question before a draft is deleted',
    fragment: `${form}&page=1`,
    async prepare(page) {
      await button(page, 'Delete this draft');
      await page.getByRole('heading', { name: 'Do you want to delete your draft?' }).waitFor();
    },
  },
  {
    name: 'apply-left',
    title: 'A shared computer after it was left',
    fragment: `${form}&page=1`,
    prepare: (page) => button(page, 'Leave this computer'),
  },
];

/** Returns the text of docs/screens/applicant.md. */
function indexText(): string {
  const sections = screens.flatMap(({ name, title }) => [
    `## ${title}`,
    '',
    views.map((view) => `![${title}, ${view.name}](${name}-${view.name}.png)`).join('\n'),
    '',
  ]);
  const introduction = [
    '# Screens of the applicant’s pages',
    '',
    'Each page on a light, a dark and a narrow screen. [applicant-pages.md](../applicant-pages.md) explains them.',
    'This page and its pictures are written by `npm run screens`.',
    '',
  ];
  return `${[...introduction, ...sections].join('\n').trimEnd()}\n`;
}

let app: ListeningApp;
let browser: Browser;
beforeAll(async () => {
  await buildPages();
  [app, browser] = await Promise.all([
    startApp(pageRoutes({ pages: ['apply'] })),
    launchChromium(['--disable-lcd-text']),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await app?.close();
});

describe.each(viewsOfRun(views))('no violation that axe finds, and nothing wider than the screen, $name', (view) => {
  it.each(screens)('$title', async ({ name, fragment, script: more, prepare }) => {
    const file = join(screensFolder, `${name}-${view.name}.png`);
    const { colorScheme, viewport } = view;
    const { page, context } = await openPage(browser, { colorScheme, viewport, bypassCSP: true });
    await scriptIntake(page, script(more));
    await page.goto(`${app.url}/apply/demo/business-licence${fragment}`);
    await page.getByRole('heading', { name: 'Loading' }).waitFor({ state: 'hidden' });
    await prepare?.(page);
    await page.locator('[data-state]:not([data-state=saved])').waitFor({ state: 'detached' });
    await page.waitForLoadState('networkidle');
    if (isWriting) {
      const picture = await page.screenshot({ fullPage: true, animations: 'disabled', caret: 'hide' });
      writeFileSync(file, smallPng(picture));
    }
    expect(existsSync(file)).toBe(true);
    expect(await faultsOf(page)).toEqual([]);
    await context.close();
  });
});

it('the page of the pictures names all of them', () => {
  if (isWriting) writeFileSync(index, indexText());
  expect(readFileSync(index, 'utf8')).toBe(indexText());
});
