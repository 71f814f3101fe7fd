// Starts a browser, and a form service with the applicant's pages and the intake application. A test can check that no
// page broke its content security policy, logged an error or has a violation that axe finds.

import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { businessLicence } from '../../dev/demo-data/business-licence.ts';
import { createCountriesRegister } from '../../dev/demo-data/countries.ts';
import { createUrns } from '../../src/service/urn.ts';
import { buildPages } from '../../web/build.ts';
import { startTestApply, type TestApply } from '../support/apply.ts';
import { accessibilityViolations, launchChromium } from '../support/chromium.ts';
import { roleToken } from '../support/platform.ts';

/** The origin of the service. The browser resolves this host name to the local port of the service. */
const origin = 'http://forms.example.org';
const fixed = { reducedMotion: 'reduce', deviceScaleFactor: 1, timezoneId: 'UTC', locale: 'en-CA' } as const;

export interface ApplicantPage {
  page: Page;
  context: BrowserContext;
  /** Errors and policy violations that the browser reported, without expected ones such as the statuses of requests. */
  complaints: string[];
}

export interface ApplicantWorld {
  apply: TestApply;
  browser: Browser;
  urlOf(definition: string, fragment?: string): string;
  open(options?: BrowserContextOptions): Promise<ApplicantPage>;
  /** Calls `ask`, which requests a code, and returns the code when it has arrived at the address. */
  codeFor(email: string, ask: () => Promise<void>): Promise<string>;
  close(): Promise<void>;
}

export async function startApplicantWorld(): Promise<ApplicantWorld> {
  // A form service that serves the pages does not start before they are built.
  await buildPages();
  const apply = await startTestApply({ env: async () => ({ PAGES: 'apply', PUBLIC_URL: origin }) });
  const { port } = new URL(apply.forms.url);
  const browser = await launchChromium([
    '--disable-lcd-text',
    `--host-resolver-rules=MAP forms.example.org 127.0.0.1:${port}`,
  ]);
  await apply.forms.define({ ...businessLicence(createUrns('urn:example'), origin), id: 'business-licence' });
  await createRegister(apply);
  return {
    apply,
    browser,
    urlOf: (definition, fragment = '') => `${origin}/apply/demo/${definition}${fragment}`,
    open: (options) => openPage(browser, options),
    async codeFor(email, ask) {
      const { mailbox } = apply.forms.platform;
      const before = new Set(mailbox.messages().map(({ id }) => id));
      await ask();
      const pattern = /^\s*([A-Z0-9]{6,})\s*$/m;
      const mail = await mailbox.waitFor(
        ({ id, to, text }) => !before.has(id) && to.includes(email) && pattern.test(text),
      );
      return pattern.exec(mail.text)?.[1] ?? '';
    },
    async close() {
      await browser.close();
      await apply.close();
    },
  };
}

async function createRegister({ forms }: TestApply): Promise<void> {
  const roles = { 'form-service': ['form-admin'], 'configuration-service': ['configuration-admin'] };
  const claims = { exp: Math.floor(forms.now().getTime() / 1000) + 600 };
  const token = await roleToken(forms.platform.access, roles, { realm: 'demo', claims });
  await createCountriesRegister({ formsUrl: forms.url, platformUrl: forms.platform.url, token });
}

/**
 * Messages that do not indicate a fault: the browser reports every status above 399, every lost connection, and the
 * missing TLS of the test's service.
 */
const expected = /^(?:Failed to load resource|The Cross-Origin-Opener-Policy header has been ignored)/;

/**
 * Turns each violation of the content security policy into an error of the page, because tests get the page's errors.
 */
const reportViolations = `addEventListener('securitypolicyviolation', (event) => setTimeout(() => {
  throw new Error('The policy forbids ' + event.violatedDirective + ' ' + event.blockedURI);
}))`;

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<ApplicantPage> {
  const context = await browser.newContext({ ...fixed, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text())) complaints.push(message.text());
  });
  await page.addInitScript(reportViolations);
  return { page, context, complaints };
}

/**
 * Returns the violations that axe finds, and whether the page is wider than the screen. The context needs `bypassCSP`.
 */
export async function faultsOf(page: Page): Promise<string[]> {
  const found = await accessibilityViolations(page);
  const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
  return isWide ? [...found, 'The page is wider than the screen.'] : found;
}
