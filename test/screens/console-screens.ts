// Lists the pages of the console that docs/screens has pictures of.
import type { Page } from 'playwright-core';

export interface ConsolePage {
  name: string;
  title: string;
  /** Path below `/console/demo`. `{form}` is the id of a form. */
  path: string;
  /** Brings the page into the state to show. */
  prepare?(page: Page): Promise<void>;
}

export const consolePages: readonly ConsolePage[] = [
  { name: 'home', title: 'Console: areas', path: '' },
  { name: 'forms', title: 'Console: forms', path: '/forms' },
  {
    name: 'form',
    title: 'Console: a form',
    path: '/forms/{form}',
    async prepare(page) {
      await page.getByRole('button', { name: 'Show data' }).click();
      await page.getByText('As JSON').waitFor();
    },
  },
  { name: 'definitions', title: 'Console: form definitions', path: '/definitions' },
  {
    name: 'definition',
    title: 'Console: the editor of a form definition',
    path: '/definitions/business-licence',
    async prepare(page) {
      await page.getByText(/problems? found/i).waitFor();
    },
  },
  { name: 'registers', title: 'Console: registers', path: '/registers' },
  {
    name: 'register',
    title: 'Console: a register',
    path: '/registers/countries',
    async prepare(page) {
      await page.getByLabel('Search in the entries').fill('Can');
    },
  },
  { name: 'clients', title: 'Console: clients', path: '/clients' },
  { name: 'client', title: 'Console: a client', path: '/clients/formgate-console' },
  { name: 'sessions', title: 'Console: sessions', path: '/sessions' },
  { name: 'operations', title: 'Console: operations', path: '/operations' },
];

export interface ConsoleView {
  name: 'light' | 'dark' | 'phone';
  colorScheme: 'light' | 'dark';
  /** Size of the window in CSS pixels. */
  viewport: { width: number; height: number };
}

export const consoleViews: readonly ConsoleView[] = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1000, height: 700 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1000, height: 700 } },
  // The narrowest screen of WCAG 2.2, success criterion 1.4.10.
  { name: 'phone', colorScheme: 'light', viewport: { width: 320, height: 640 } },
];

export const fileOfConsole = (page: string, { name }: ConsoleView): string => `console-${page}-${name}.png`;
