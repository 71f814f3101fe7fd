// Lists the pictures of docs/screens, and writes their index. The index contains a digest of the pages, so that a
// change of a page without new pictures is noticed.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type PageName, pageNames } from '../../src/token-handler/pages/catalogue.ts';
import { renderFailurePage } from '../../src/token-handler/pages/failure-page.ts';
import { parsePageSettings } from '../../src/token-handler/pages/settings.ts';
import { stylesheetOf } from '../../src/token-handler/pages/stylesheet.ts';
import { defaultTexts, languages } from '../../src/token-handler/pages/texts.ts';
import { consolePages, consoleViews, fileOfConsole } from './console-screens.ts';

export const screensFolder = join(import.meta.dirname, '../../docs/screens');

export interface View {
  name: 'light' | 'dark' | 'phone' | 'french';
  colorScheme: 'light' | 'dark';
  locale: 'en-CA' | 'fr-CA';
  /** Size of the window in CSS pixels. */
  viewport: { width: number; height: number };
}

const desktop = { width: 720, height: 600 };

export const views: readonly View[] = [
  { name: 'light', colorScheme: 'light', locale: 'en-CA', viewport: desktop },
  { name: 'dark', colorScheme: 'dark', locale: 'en-CA', viewport: desktop },
  // The narrowest screen of WCAG 2.2, success criterion 1.4.10.
  { name: 'phone', colorScheme: 'light', locale: 'en-CA', viewport: { width: 320, height: 640 } },
  { name: 'french', colorScheme: 'light', locale: 'fr-CA', viewport: desktop },
];

export const fileOf = (page: PageName | 'operator', { name }: View): string => `${page}-${name}.png`;

const star =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><circle cx="24" cy="24" r="24" fill="#9b1c4d"/><path fill="#fff" d="m24 8 4.7 10.5L40 20l-8.3 7.7L34 39l-10-5.8L14 39l2.3-11.3L8 20l11.3-1.5z"/></svg>';

/** Example settings of an operator, which use every kind of setting. */
export const operatorExample = {
  name: { en: 'Example Town', fr: 'Ville d’Exemple' },
  support: {
    en: 'Do you need help? Call 310-0000, Monday to Friday from 8 to 16.',
    fr: 'Besoin d’aide? Appelez le 310-0000, du lundi au vendredi de 8 h à 16 h.',
  },
  logo: {
    src: `data:image/svg+xml;base64,${Buffer.from(star).toString('base64')}`,
    alt: { en: 'Star of Example Town', fr: 'Étoile de la Ville d’Exemple' },
  },
  colours: {
    light: { background: '#fbf3f6', accent: '#9b1c4d' },
    dark: { background: '#1c1216', surface: '#271a20', accent: '#f4a3c3' },
  },
  texts: {
    'sign-in-expired': {
      en: { advice: 'Sign in again. Your drafts are still there.' },
      fr: { advice: 'Connectez-vous de nouveau. Vos brouillons sont encore là.' },
    },
  },
};

/** Returns the text of docs/screens/README.md. */
export function screenIndex(): string {
  const sections = [...pageNames, 'operator' as const].flatMap((page) => {
    const title = page === 'operator' ? 'A page with the settings of an operator' : defaultTexts[page].en.title;
    const pictures = views.map((view) => `![${title}, ${view.name}](${fileOf(page, view)})`);
    return [`## ${title}`, '', `\`${page}\``, '', pictures.join('\n'), ''];
  });
  return `${[
    '# Screens',
    '',
    'The pages that people see when a sign-in or a logout fails, each on a light, a dark and a narrow screen, and in French;',
    'and the pages of the [console](../console.md). Those of [applicants](applicant.md) and [all others](other.md) have an index of their own.',
    '[pages.md](../pages.md) says when each page is shown, and how operators change texts, logo and colours.',
    '',
    `This folder is written by \`npm run screens\`. A test fails if the pages have changed since then (${digest()}).`,
    '',
    ...sections,
    ...consoleSections(),
  ]
    .join('\n')
    .trimEnd()}\n`;
}

/** Each picture of the console shows one state of its page; tests open every state. */
function consoleSections(): string[] {
  return consolePages.flatMap(({ name, title }) => {
    const pictures = consoleViews.map((view) => `![${title}, ${view.name}](${fileOfConsole(name, view)})`);
    return [`## ${title}`, '', pictures.join('\n'), ''];
  });
}

/** Returns a digest of all pages, with the default settings and the operator's. */
function digest(): string {
  const hash = createHash('sha256');
  for (const json of [undefined, JSON.stringify(operatorExample)]) {
    const parsed = parsePageSettings(json);
    if ('problems' in parsed) throw new Error(parsed.problems.join('\n'));
    const styles = stylesheetOf(parsed.settings.palettes);
    for (const name of pageNames)
      for (const language of languages) {
        const action = { label: 'tryAgain', href: '' } as const;
        hash.update(renderFailurePage({ name, language, action, requestId: 'x', wait: 150 }, parsed.settings, styles));
      }
  }
  return hash.digest('hex').slice(0, 16);
}
