// Lists the pages of the console of which docs/screens has pictures.
import type { Page } from 'playwright-core';
import type { View } from './screen-index.ts';

export interface ConsolePage {
  name: string;
  /** Below `/console/demo`. `{form}` is the id of a form. */
  path: string;
  /** Brings the page into the state to show. */
  prepare?(page: Page): Promise<void>;
}

export const consolePages: readonly ConsolePage[] = [
  { name: 'home', path: '' },
  { name: 'forms', path: '/forms' },
  {
    name: 'form',
    path: '/forms/{form}',
    async prepare(page) {
      await page.getByRole('button', { name: 'Show data' }).click();
      await page.getByText('As JSON').waitFor();
    },
  },
  { name: 'definitions', path: '/definitions' },
  {
    name: 'definition',
    path: '/definitions/business-licence',
    async prepare(page) {
      await page.getByText(/problems? found/i).waitFor();
    },
  },
  { name: 'registers', path: '/registers' },
  {
    name: 'register',
    path: '/registers/countries',
    async prepare(page) {
      await page.getByLabel('Search in the entries').fill('Can');
    },
  },
  { name: 'clients', path: '/clients' },
  { name: 'client', path: '/clients/formgate-console' },
  { name: 'sessions', path: '/sessions' },
  { name: 'operations', path: '/operations' },
];

export type ConsoleView = Pick<View, 'colorScheme' | 'viewport'> & { name: 'light' | 'dark' | 'phone' };

export const consoleViews: readonly ConsoleView[] = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1000, height: 700 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1000, height: 700 } },
  // The narrowest screen of WCAG 2.2, success criterion 1.4.10.
  { name: 'phone', colorScheme: 'light', viewport: { width: 320, height: 640 } },
];

export const fileOfConsole = (page: string, { name }: ConsoleView): string => `console-${page}-${name}.png`;
