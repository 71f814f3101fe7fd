// Tests the setting SIGN_IN_PAGES, with which operators adapt the failure pages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ConfigError, parseConfig } from '../../service/operations/config.ts';
import { configSchema } from '../config.ts';
import { contrast, contrastProblems, defaultPalettes, labelOn, schemes } from './colours.ts';
import { renderFailurePage } from './failure-page.ts';
import { parsePageSettings } from './settings.ts';
import { policyOf, stylesheetOf } from './stylesheet.ts';
import { defaultTexts } from './texts.ts';

const pixel = 'data:image/png;base64,iVBORw0KGgo=';
const alt = { en: 'Example Town', fr: 'Ville d’Exemple' };

function parsed(given: unknown) {
  const result = parsePageSettings(JSON.stringify(given));
  if ('problems' in result) throw new Error(result.problems.join('\n'));
  return result.settings;
}

function problemsOf(given: unknown): string[] {
  const result = parsePageSettings(typeof given === 'string' ? given : JSON.stringify(given));
  return 'problems' in result ? result.problems : [];
}

describe('SIGN_IN_PAGES', () => {
  it('replaces single texts in one language, and keeps all others', () => {
    const { texts } = parsed({ texts: { 'rate-limited': { fr: { advice: 'Attendez, s’il vous plaît.' } } } });
    expect(texts['rate-limited'].fr).toEqual({
      ...defaultTexts['rate-limited'].fr,
      advice: 'Attendez, s’il vous plaît.',
    });
    expect(texts['rate-limited'].en).toEqual(defaultTexts['rate-limited'].en);
    expect(texts.general).toEqual(defaultTexts.general);
  });

  it('is shown on the page: name, support, logo and texts, all of them escaped', () => {
    const settings = parsed({
      name: { en: 'Example <Town>' },
      support: { en: 'Call 310-0000 & ask for "forms".' },
      logo: { src: pixel, darkSrc: 'https://cdn.example.org/dark.svg', alt },
      texts: { general: { en: { title: 'Oh <b>no</b>' } } },
    });
    const shown = { name: 'general', requestId: 'r', action: { label: 'startPage', href: '/' } } as const;
    const english = renderFailurePage({ ...shown, language: 'en' }, settings, '');
    expect(english).toContain('<title>Oh &lt;b&gt;no&lt;/b&gt; – Example &lt;Town&gt;</title>');
    expect(english).toContain(`<img src="${pixel}" alt="Example Town"`);
    expect(english).toContain(
      '<source media="(prefers-color-scheme: dark)" srcset="https://cdn.example.org/dark.svg">',
    );
    expect(english).toContain('<footer>Call 310-0000 &amp; ask for &quot;forms&quot;.</footer>');
    const tenant = '</bdi><script>';
    expect(renderFailurePage({ ...shown, tenant, language: 'en' }, settings, '')).toContain(
      '<dt>Organization</dt><dd><bdi>&lt;/bdi&gt;&lt;script&gt;</bdi></dd>',
    );
    const french = renderFailurePage({ ...shown, language: 'fr' }, settings, '');
    expect(french).toContain('alt="Ville d’Exemple"');
    expect(french).toContain(`<title>${defaultTexts.general.fr.title}</title>`);
    expect(french).not.toContain('<footer>');
  });

  it('allows the logo in the Content-Security-Policy: a data: URL, or exactly one https URL for each scheme', () => {
    const images = (logo: unknown) =>
      /img-src ([^;]*);/.exec(policyOf('', parsed({ logo: { alt, ...(logo as object) } }).logo))?.[1];
    expect(images({ src: pixel })).toBe('data:');
    const https = 'https://cdn.example.org:8443/a/logo%20(1).svg'.replace(/[()]/g, '');
    expect(images({ src: https })).toBe(`data: ${https}`);
    expect(images({ src: https, darkSrc: 'https://cdn.example.org/b.png' })).toBe(
      `data: ${https} https://cdn.example.org/b.png`,
    );
  });

  it('accepts the example of docs/pages.md', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/pages.md'), 'utf8');
    const { tokenHandler } = parse(/```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '');
    expect(problemsOf(tokenHandler.signInPages)).toEqual([]);
    expect(parsed(tokenHandler.signInPages).support?.en).toBe('Do you need help? Call 310-0000.');
  });

  it('changes the colours of one scheme, in any case of letters', () => {
    const { palettes } = parsed({ colours: { light: { accent: '#7A0019' } } });
    expect(palettes).toEqual({
      light: { ...defaultPalettes.light, accent: '#7a0019' },
      dark: defaultPalettes.dark,
    });
    expect(stylesheetOf(palettes)).toContain('--accent: #7a0019;');
  });

  it.each([
    ['{', 'must be JSON'],
    [[], 'must be an object'],
    [{ textz: {} }, '/textz is not a known field'],
    [{ texts: { nothing: {} } }, '/texts/nothing is not a known field'],
    [{ texts: { general: { de: {} } } }, '/texts/general/de is not a known field'],
    [{ texts: { general: { en: { title: '' } } } }, '/texts/general/en/title must be one line of text'],
    [{ texts: { general: { en: { title: 'a\nb' } } } }, '/texts/general/en/title must be one line of text'],
    [{ texts: { general: { en: { title: 'x'.repeat(101) } } } }, '/texts/general/en/title must have at most 100'],
    [{ texts: { general: { en: { advice: 'x'.repeat(501) } } } }, '/texts/general/en/advice must have at most 500'],
    [{ name: { en: 5 } }, '/name/en must be a string'],
    [{ support: 'x' }, '/support must be an object'],
    [{ logo: { src: pixel } }, '/logo/alt is required'],
    [{ logo: { src: pixel, alt: { en: 'x' } } }, '/logo/alt/fr is required'],
    [{ colours: { light: { accent: 'red' } } }, '/colours/light/accent must be a colour such as #155e75'],
    [{ colours: { light: { accent: '#123' } } }, '/colours/light/accent must be a colour'],
    [{ colours: { light: { accent: '#123456;}*{display:none' } } }, '/colours/light/accent must be a colour'],
    [`"${'x'.repeat(65_536)}"`, 'must have at most 65536 bytes'],
  ])('is refused, with the place of the mistake: %j', (given, problem) => {
    const [first = ''] = problemsOf(given);
    expect(first.startsWith(problem), first).toBe(true);
  });

  it.each([
    'http://cdn.example.org/logo.png',
    'https://a:b@cdn.example.org/logo.png',
    'https://cdn.example.org/logo.png?x=1',
    'https://cdn.example.org/logo.png#x',
    'https://cdn.example.org',
    'https://*.example.org/logo.png',
    "https://cdn.example.org/logo.png; script-src 'unsafe-inline'",
    'https://cdn.example.org/a,b.png',
    'https://cdn.example.org:99999/logo.png',
    '//cdn.example.org/logo.png',
    '/logo.png',
    'javascript:alert(1)',
    'data:text/html;base64,PHNjcmlwdD4=',
    'data:image/svg+xml,<svg onload="alert(1)"/>',
    'data:image/png;base64,not base64',
    `data:image/png;base64,${'A'.repeat(40_000)}`,
    '',
  ])('refuses the logo %j', (src) => {
    expect(problemsOf({ logo: { src, alt } }).join()).toMatch(/^\/logo\/src must/);
    expect(problemsOf({ logo: { src: pixel, darkSrc: src, alt } }).join()).toMatch(/^\/logo\/darkSrc must/);
  });

  it('refuses colours whose contrast is below WCAG AA, also together with the defaults, and says which', () => {
    expect(problemsOf({ colours: { light: { text: '#777777' }, dark: { accent: '#0c2b35' } } })).toEqual([
      '/colours/light text on background has a contrast of 4.06:1, less than 4.5:1 (WCAG AA)',
      '/colours/light text on surface has a contrast of 4.47:1, less than 4.5:1 (WCAG AA)',
      '/colours/dark accent on surface has a contrast of 1.08:1, less than 4.5:1 (WCAG AA)',
      '/colours/dark accent on background has a contrast of 1.20:1, less than 3:1 (WCAG AA)',
    ]);
  });

  it('is reported with every other problem of the configuration, all its own problems included', () => {
    const SIGN_IN_PAGES = JSON.stringify({ name: 1, colours: { dark: { text: 'white' } } });
    const names = (() => {
      try {
        parseConfig(configSchema, { SIGN_IN_PAGES, PORT: 'x' });
        return [];
      } catch (error) {
        if (error instanceof ConfigError) return error.problems.map(({ name, problem }) => `${name}: ${problem}`);
        throw error;
      }
    })();
    expect(names).toEqual(
      expect.arrayContaining([
        'SIGN_IN_PAGES: /name must be an object',
        'SIGN_IN_PAGES: /colours/dark/text must be a colour such as #155e75',
        'KEY_RING: is required',
        expect.stringMatching(/^PORT: /),
      ]),
    );
  });
});

describe('the colours', () => {
  it('have the contrast of WCAG’s examples', () => {
    expect(contrast('#000000', '#ffffff')).toBe(21);
    expect(contrast('#777777', '#ffffff')).toBeCloseTo(4.48, 2);
    expect(contrast('#ff0000', '#ffffff')).toBeCloseTo(4, 2);
  });

  it('of the defaults have at least the contrast of level AA', () => {
    for (const scheme of schemes) expect(contrastProblems(defaultPalettes[scheme])).toEqual([]);
  });

  it('give every button a label that can be read', () => {
    for (let grey = 0; grey < 256; grey += 1) {
      const hex = grey.toString(16).padStart(2, '0');
      for (const colour of [`#${hex}${hex}${hex}`, `#${hex}0000`, `#00${hex}00`, `#ff${hex}ff`])
        expect(contrast(labelOn(colour), colour)).toBeGreaterThan(4.5);
    }
  });
});
