// Starts `npm start` and a signed-in browser once for all tests of a file.
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest';
import { type ConsoleWorld, settled, startConsoleWorld } from './console-world.ts';

/** The environment that the tests of the console share. Its members can be used only while tests run. */
export interface ConsoleSuite {
  readonly world: ConsoleWorld;
  readonly context: BrowserContext;
  /** The id of a form with some data. */
  readonly formId: string;
  /** Opens a page of the console until the end of the test. `path` is below `/console/demo`. */
  open(path: string, from?: BrowserContext): Promise<Page>;
}

interface Options {
  isSignedIn?: boolean;
  /** Called with each context before it opens a page. */
  onContext?(context: BrowserContext): void;
}

/**
 * Registers hooks that start everything before the first test, stop everything after the last test, and check after
 * each test that no page caused a complaint.
 */
export function useConsole({ isSignedIn = true, onContext }: Options = {}): ConsoleSuite {
  let world: ConsoleWorld;
  let context: BrowserContext;
  let formId: string;
  beforeAll(async () => {
    world = await startConsoleWorld(onContext);
    context = await world.context();
    if (isSignedIn) await (await world.signIn(context)).close();
    formId = await world.form({ businessName: 'Northern Lights Bakery', structure: 'corporation', servesFood: true });
  });
  afterAll(() => world?.close());
  afterEach(() => expect(world.complaints.splice(0)).toEqual([]));
  return {
    get world() {
      return world;
    },
    get context() {
      return context;
    },
    get formId() {
      return formId;
    },
    async open(path, from = context) {
      const page = await from.newPage();
      onTestFinished(() => page.close());
      await page.goto(`${world.url}/console/demo${path}`);
      await settled(page);
      return page;
    },
  };
}
