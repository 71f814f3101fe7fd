// The system's Chromium, headless, for tests of the pages that people see.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const missing =
  'Chromium is not installed: these tests need it. `apt-get install chromium` brings it, as .ci/run does; CHROMIUM may name another.';

/** Milliseconds for a start, a navigation or an action. The default of 30 s is too short on a busy machine. */
const patience = 90_000;

/** Failed requests of each open browser context: at most the last ten, as texts. */
const failures = new Map<BrowserContext, string[]>();

/** Starts Chromium with the additional command-line switches `more`. The caller closes the browser. */
export async function launchChromium(more: readonly string[] = []): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? places.find((place) => existsSync(place));
  if (executablePath === undefined) throw new Error(missing);
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...more];
  const browser = await chromium.launch({ executablePath, args, timeout: patience });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(patience);
    recordFailures(context);
    return context;
  };
  return browser;
}

function recordFailures(context: BrowserContext): void {
  const failed: string[] = [];
  const record = (text: string) => {
    failed.push(text);
    if (failed.length > 10) failed.shift();
  };
  failures.set(context, failed);
  context.on('close', () => failures.delete(context));
  context.on('response', (response) => {
    if (response.status() >= 400) record(`${response.status()} ${response.request().method()} ${response.url()}`);
  });
  context.on('requestfailed', (request) =>
    record(`${request.failure()?.errorText} ${request.method()} ${request.url()}`),
  );
}

/** Returns a text for each open page: its address, its accessibility tree, and the failed requests of its context. */
export async function reportsOfPages(): Promise<string[]> {
  const reports = [...failures].flatMap(([context, failed]) =>
    context.pages().map(async (page) => {
      const text = await page
        .locator('body')
        .ariaSnapshot({ timeout: 1_000 })
        .catch((error: Error) => error.message);
      return [`${page.url()} shows:`, text, ...failed.map((line) => `failed request: ${line}`)].join('\n');
    }),
  );
  return Promise.all(reports);
}

/** Returns the violations that axe finds in a page, as texts. Create the page's context with `bypassCSP`. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  const axe = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'));
  await page.addScriptTag({ content: await readFile(axe, 'utf8') });
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
    const { violations } = await axe.run();
    return violations.map(({ impact, id, help, nodes }) => `${impact} ${id}: ${help} (${nodes.length})`);
  });
}

interface Violation {
  impact: string;
  id: string;
  help: string;
  nodes: unknown[];
}
