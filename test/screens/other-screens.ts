// Lists the pages of docs/screens/other.md: all pages except the applicant's pages and the areas of the console.
import type { Page } from 'playwright-core';

export interface OtherScreen {
  name: string;
  title: string;
  /** Path of the page below the address of `npm start`. */
  path?: string;
  /** The link of the warning mail that leads to the page, instead of `path`. */
  link?: 'keep' | 'remove';
  /** The test file that runs axe on this page, if other-screens.test.ts does not. */
  checkedIn?: string;
  /** Brings the page into the state to show. */
  prepare?(page: Page): Promise<void>;
}

/** Resolves when the page has loaded and shows its heading. */
export async function shown(page: Page): Promise<void> {
  await page.waitForLoadState('load');
  await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Loading' }).first().waitFor();
}

const pressButton = async (page: Page) => {
  await page.locator('main button').click();
  await shown(page);
};

/** axe takes up to 15 s for the page of an API, so only one test runs axe on this page. */
const longPage = { checkedIn: 'src/service/openapi/docs-page.test.ts' };

export const otherScreens: readonly OtherScreen[] = [
  { name: 'start', title: 'The start page of npm start', path: '/' },
  { name: 'console-choice', title: 'The console before a tenant is chosen', path: '/console' },
  { name: 'console-sign-in', title: 'The console before the sign-in', path: '/console/demo' },
  { name: 'console-core', title: 'The console for operators of the realm core', path: '/console/core' },
  { name: 'keep', title: 'The link of the warning mail that keeps the draft', link: 'keep' },
  {
    name: 'kept',
    title: 'The draft is kept',
    link: 'keep',
    prepare: pressButton,
  },
  { name: 'delete', title: 'The link of the warning mail that deletes the draft', link: 'remove' },
  {
    name: 'delete-code',
    title: 'A deletion takes a code',
    link: 'remove',
    prepare: pressButton,
  },
  { name: 'api', title: 'The API of the form service', path: '/docs', ...longPage },
  { name: 'api-token-handler', title: 'The API of the token handler', path: '/token-handler/docs', ...longPage },
  {
    name: 'api-try',
    title: 'The page for trying calls',
    path: '/docs/try',
    async prepare(page) {
      await page.locator('summary').first().click();
    },
  },
  { name: 'problem', title: 'The page of a problem type', path: '/problems/form-locked' },
  { name: 'mailbox', title: 'The mailbox of npm start', path: '/mailbox' },
  {
    name: 'mailbox-message',
    title: 'A message in the mailbox',
    path: '/mailbox',
    async prepare(page) {
      await page.locator('main a[href^="/mailbox/"]').first().click();
      await shown(page);
    },
  },
];

export const otherViews = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1000, height: 700 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1000, height: 700 } },
  // The narrowest screen of WCAG 2.2, success criterion 1.4.10.
  { name: 'phone', colorScheme: 'light', viewport: { width: 320, height: 640 } },
] as const;

export const fileOfOther = (screen: string, { name }: { name: string }): string => `other-${screen}-${name}.png`;

/** Returns the text of docs/screens/other.md. */
export function otherIndex(): string {
  const sections = otherScreens.flatMap(({ name, title }) => [
    `## ${title}`,
    '',
    otherViews.map((view) => `![${title}, ${view.name}](${fileOfOther(name, view)})`).join('\n'),
    '',
  ]);
  const introduction = [
    '# Screens of the other pages',
    '',
    'The pages behind the links of the warning mail, the console before a sign-in, the pages of the APIs, and those that only',
    '`npm start` has. This page and its pictures are written by `npm run screens`.',
    '',
  ];
  return `${[...introduction, ...sections].join('\n').trimEnd()}\n`;
}
