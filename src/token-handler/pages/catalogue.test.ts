// Tests that each problem that a sign-in or a logout can cause has a page, with plain texts in both languages.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tokenHandlerApiRoutes } from '../../../test/rules/route-tables.ts';
import { type ProblemSlug, problemTypes } from '../../service/http/problem-types.ts';
import { type Endpoint, type PageName, pageFor, pageNames } from './catalogue.ts';
import { defaultTexts, languages, sharedWords } from './texts.ts';

const root = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const endpoints: Endpoint[] = ['auth', 'callback', 'logout'];
const pathOf = (endpoint: Endpoint) => `/token-handler/v1/clients/:clientId/${endpoint}`;
const routes = tokenHandlerApiRoutes();

/**
 * Returns the statuses that a route documents. Adds two statuses of every route: 405 for other methods, and 500 for an
 * unexpected error.
 */
function statusesOf(endpoint: Endpoint): number[] {
  const found = routes.find(({ method, path }) => method === 'get' && path === pathOf(endpoint));
  return [...Object.keys(found?.responses ?? {}).map(Number), 405, 500];
}

/** The slugs and statuses of the problem types that docs/errors.md lists. */
const documented = [...read('docs/errors.md').matchAll(/^\| `([a-z-]+)` \| (\d{3}) \|/gm)].map(
  ([, slug = '', status]) => ({ slug: slug as ProblemSlug, status: Number(status) }),
);

/** Slugs of the problems that the token handler and the shared code can throw. */
const thrown = new Set(
  globSync('src/{token-handler,service,platform}/**/*.ts', {
    cwd: root,
    exclude: ['**/*.test.ts', '**/problem-types.ts'],
  })
    .flatMap((path) => [...read(path).matchAll(/'([a-z]+(?:-[a-z]+)*)'/g)].map(([, slug = '']) => slug))
    .filter((slug) => slug in problemTypes),
);

/** Problems that only other routes cause: those of proxied requests, request bodies, forms and changes to clients. */
const elsewhere: ProblemSlug[] = [
  'malformed-json',
  'invalid-path',
  'upstream-unresolved',
  'code-required',
  'definition-invalid',
  'conflict',
];

function possible(endpoint: Endpoint): ProblemSlug[] {
  const statuses = statusesOf(endpoint);
  return documented
    .filter(({ slug, status }) => statuses.includes(status) && thrown.has(slug) && !elsewhere.includes(slug))
    .map(({ slug }) => slug);
}

describe('the catalogue of pages', () => {
  it('reads the routes and the problem types from the references', () => {
    for (const endpoint of endpoints)
      expect(read('docs/routes.md')).toContain(`| GET, no HEAD | \`${pathOf(endpoint)}\` |`);
    expect(documented.map(({ slug }) => slug).sort()).toEqual(Object.keys(problemTypes).sort());
  });

  const ofSignIn = {
    unauthenticated: 'general',
    'not-found': 'unknown-tenant',
    'method-not-allowed': 'invalid-link',
    'registration-required': 'client-not-registered',
    'too-many-requests': 'rate-limited',
    internal: 'general',
    'dependency-failed': 'service-unavailable',
    busy: 'service-unavailable',
    unavailable: 'service-unavailable',
    'dependency-timeout': 'service-unavailable',
  } as const;
  it.each([
    ['auth', { 'invalid-request': 'invalid-link', ...ofSignIn }],
    ['callback', { 'invalid-request': 'sign-in-expired', ...ofSignIn }],
    [
      'logout',
      {
        'invalid-request': 'sign-out-failed',
        'method-not-allowed': 'sign-out-failed',
        internal: 'sign-out-failed',
        busy: 'sign-out-failed',
        unavailable: 'sign-out-failed',
      },
    ],
  ] as const)('has a page for every problem type that %s can give', (endpoint, pages) => {
    const actual = possible(endpoint).map((slug) => [slug, pageFor(endpoint, slug, {})]);
    expect(Object.fromEntries(actual)).toEqual(pages);
  });

  it('says more once the tenant or the client is known', () => {
    expect(pageFor('auth', 'not-found', { tenant: 'Demo' })).toBe('unknown-client');
    const known = { tenant: 'Demo', client: 'Web' };
    for (const slug of ['dependency-failed', 'dependency-timeout'] as const)
      expect([pageFor('auth', slug, known), pageFor('callback', slug, known)]).toEqual([
        'identity-provider-down',
        'identity-provider-down',
      ]);
  });

  it('is the one that docs/pages.md describes', () => {
    const rows = [...read('docs/pages.md').matchAll(/^\| `([a-z-]+)` \| .* \| [^|]*(?:\d{3}|status) \|$/gm)];
    expect(rows.map(([, name]) => name)).toEqual([...pageNames]);
  });

  it('has a page for problem types that a route does not give', () => {
    const names = Object.keys(problemTypes).map((slug) => pageFor('auth', slug as ProblemSlug, {}));
    expect(names.filter((name) => !pageNames.includes(name))).toEqual([]);
    expect(pageFor('auth', 'form-locked', {})).toBe('general');
  });
});

describe.each(languages)('the texts in %s', (language) => {
  const all = (Object.entries(defaultTexts) as [PageName, (typeof defaultTexts)[PageName]][]).map(
    ([name, texts]) => [name, texts[language]] as const,
  );

  it('exist for every page, and differ from page to page', () => {
    expect(all.map(([name]) => name)).toEqual([...pageNames]);
    expect(new Set(all.map(([, { title }]) => title)).size).toBe(pageNames.length);
  });

  it.each(all)('are short sentences without words of the trade: %s', (_name, { title, happened, advice }) => {
    for (const sentence of [title, ...`${happened} ${advice}`.split(/(?<=[.?!])\s/)]) {
      expect(sentence.split(/\s+/).length, sentence).toBeLessThanOrEqual(language === 'en' ? 18 : 20);
      expect(sentence).not.toMatch(
        /\b(?:token|tenant|client|session store|cookie|OIDC|HTTP|server|realm|jeton|serveur)\b/i,
      );
    }
    expect(title).not.toMatch(/[.!]$/);
  });

  it('have a button label for each action, and a time to wait with the right plural', () => {
    const words = sharedWords[language];
    expect(new Set([words.signInAgain, words.tryAgain, words.startPage]).size).toBe(3);
    expect(words.wait(1)).toMatch(/\b(?:one|une) minute\b/);
    expect(words.wait(5)).toMatch(/\b5 minutes\b/);
    expect(words.wait(1_440)).toMatch(/\b24 (?:hours|heures)\b/);
  });
});
