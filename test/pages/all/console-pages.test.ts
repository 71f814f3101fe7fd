// Tests every page of the console in every view, and every action. The last test fails if an event handler in the
// console's sources has not run.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buildWithMaps } from '../../../web/source-maps.ts';
import { ConsoleCoverage } from '../console-actions.ts';
import { testPaths } from '../console-paths.ts';
import { type ConsoleSuite, useConsole } from '../console-suite.ts';
import { testClients } from './console/clients.ts';
import { testDefinitions } from './console/definitions.ts';
import { testForms } from './console/forms.ts';
import { testOperations } from './console/operations.ts';
import { testRegisterLists } from './console/register-lists.ts';
import { testRegisters } from './console/registers.ts';
import { testSessions } from './console/sessions.ts';
import { testViews } from './console/views.ts';

let folder: string;
let coverage: ConsoleCoverage;
const sessions = new Map<Page, Promise<CDPSession>>();

function follow(context: BrowserContext): void {
  context.on('page', (page) => sessions.set(page, startCounting(context, page)));
}

async function startCounting(context: BrowserContext, page: Page): Promise<CDPSession> {
  // The browser discards a document's coverage counts when the page navigates away, so read the counts before each
  // navigation.
  const { goto, reload } = page;
  page.goto = (...args) => collect().then(() => goto.apply(page, args));
  page.reload = (...args) => collect().then(() => reload.apply(page, args));
  const session = await context.newCDPSession(page);
  await session.send('Profiler.enable');
  await session.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return session;
}

/**
 * Reads the coverage counts of the last page of each context. Only one page is read, because pages of a context may
 * share a process, and reading one page's counts resets the counts of the others to 0.
 */
async function collect(): Promise<void> {
  for (const page of sessions.keys()) if (page.isClosed()) sessions.delete(page);
  const last = new Map([...sessions].map(([page, session]) => [page.context(), session]));
  for (const session of last.values())
    coverage.add((await (await session).send('Profiler.takePreciseCoverage')).result);
}

describe('the console', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'formgate-maps-'));
    await buildWithMaps('console', folder);
    coverage = new ConsoleCoverage(join(folder, 'assets'));
  });
  const signedIn: ConsoleSuite = useConsole({ onContext: follow });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  // The pages are still open at this point.
  afterEach(collect);

  testViews(signedIn);
  testForms(signedIn);
  testRegisters(signedIn);
  testRegisterLists(signedIn);
  testDefinitions(signedIn);
  testClients(signedIn);
  testOperations(signedIn);
  testSessions(signedIn);
  describe('the short selection of `npm test`', () => {
    let context: BrowserContext;
    beforeAll(async () => {
      context = await signedIn.world.context();
    });
    testPaths({
      get world() {
        return signedIn.world;
      },
      get context() {
        return context;
      },
      get formId() {
        return signedIn.formId;
      },
      open: (path, from = context) => signedIn.open(path, from),
    });
  });

  it('every action in the sources of the console has run', () => {
    // These handlers navigate away from the page, so their coverage counts are lost. Other tests check that they sign
    // the person out or load the page again.
    const leaves = /^(?:app\.tsx:\d+ (?:onSignOut|onClick)|elements\/problem-box\.tsx:\d+ onClick)$/;
    expect(coverage.missing().filter((name) => !leaves.test(name))).toEqual([]);
  });
});
