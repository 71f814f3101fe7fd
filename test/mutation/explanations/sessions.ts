// The mutants that survive in sessions and logout, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const sessions: readonly Explanation[] = [
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
    text: 'return named === undefined || named === tenantId ? undefined : checkNamed(named, tenantId);',
    changes: [['named === tenantId', 'false']],
    kind: 'performance only',
    why: 'a tenant that is named by its URN is looked up, although nothing can differ.',
  },
];
