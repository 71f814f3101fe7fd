// The mutants that survive in the cookies of sessions and in the guards that find sessions, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const sessionCookies: readonly Explanation[] = [
  {
    file: 'src/token-handler/sessions/cookies.ts',
    text: "return '';",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'neither text is a signed cookie.',
  },
  {
    file: 'src/token-handler/sessions/cookies.ts',
    text: 'if (found) return found;',
    changes: [['found', 'false']],
    kind: 'performance only',
    why: 'the cookie is verified again.',
  },
  {
    file: 'src/token-handler/sessions/cookies.ts',
    text: 'cache.set(value, verified);',
    changes: [['cache.set(value, verified);', ';']],
    kind: 'performance only',
    why: 'the cookie is verified again.',
  },
  {
    file: 'src/token-handler/sessions/cookies.ts',
    text: "const onlyVerifiedIn = (header = '') => {",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'neither text is a signed cookie.',
  },
  {
    file: 'src/token-handler/sessions/cookies.ts',
    text: "if (!text.startsWith('s:') || dot < 0) return undefined;",
    changes: [
      ['dot < 0', 'false'],
      ['dot < 0', 'dot <= 0'],
    ],
    kind: 'second barrier',
    why: 'without a dot, the signature that is compared is the whole text, which never matches.',
  },
  {
    file: 'src/token-handler/sessions/cookies.ts',
    text: "isSameText(createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, ''), given),",
    changes: [
      ['/=+$/', '/=+/'],
      ['/=+$/', '/=$/'],
    ],
    kind: 'equivalent',
    why: 'the base64 of an HMAC-SHA-256 ends with exactly one equals sign.',
  },
  {
    file: 'src/token-handler/sessions/guards.ts',
    text: "const isPrefetch = prefetchHeaders.some((name) => String(headers[name] ?? '').startsWith('prefetch'));",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'neither text begins with “prefetch”.',
  },
  {
    file: 'src/token-handler/sessions/guards.ts',
    text: "name: 'notEmbedded',",
    changes: [["'notEmbedded'", '""']],
    kind: 'killed elsewhere',
    why: 'test/rules compares the guards of each route with docs/routes.md.',
  },
  {
    file: 'src/token-handler/sessions/guards.ts',
    text: "name: 'notPrefetched',",
    changes: [["'notPrefetched'", '""']],
    kind: 'killed elsewhere',
    why: 'test/rules compares the guards of each route with docs/routes.md.',
  },
  {
    file: 'src/token-handler/sessions/guards.ts',
    text: "headers: { 'X-XSRF-TOKEN': { description: `Repeats the cookie ${csrfCookie}`, isRequired: true } },",
    changes: [
      ["{ 'X-XSRF-TOKEN': { description: `Repeats the cookie ${csrfCookie}`, isRequired: true } }", '{}'],
      ['{ description: `Repeats the cookie ${csrfCookie}`, isRequired: true }', '{}'],
      ['true', 'false'],
    ],
    kind: 'killed elsewhere',
    why: 'it is the documentation of the header, which test/rules checks in the OpenAPI document.',
  },
  {
    file: 'src/token-handler/sessions/guards.ts',
    text: 'return named === undefined || named === tenantId ? undefined : checkNamed(named, tenantId);',
    changes: [['named === tenantId', 'false']],
    kind: 'performance only',
    why: 'a tenant that is named by its URN is looked up, although nothing can differ.',
  },
];
