// The mutants that survive in the code for logouts by the identity provider, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const logout: readonly Explanation[] = [
  {
    file: 'src/token-handler/logout/logout-token.ts',
    text: "return typeof iss === 'string' ? iss : '';",
    changes: [["typeof iss === 'string'", 'true']],
    kind: 'equivalent',
    why: 'a value that is no text is no known issuer either; the check satisfies the type checker.',
  },
  {
    file: 'src/token-handler/logout/logout-token.ts',
    text: "return typeof iss === 'string' ? iss : '';",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'neither text is the issuer of a realm.',
  },
  {
    file: 'src/token-handler/logout/logout-token.ts',
    text: "throw new LogoutRefusal('the token is not a JWT', { cause: error });",
    changes: [["'the token is not a JWT'", '""']],
    kind: 'text for people',
    why: 'the reason in the log.',
  },
  {
    file: 'src/token-handler/logout/provider-logouts.ts',
    text: "? [await sessions.ofUser(tenantId, sub ?? '', 'all')]",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'a logout without a session names a person; the default satisfies the type checker.',
  },
  {
    file: 'src/token-handler/logout/provider-logouts.ts',
    text: 'return values.some((endedAt) => endedAt !== undefined && endedAt >= since);',
    changes: [['endedAt !== undefined', 'true']],
    kind: 'equivalent',
    why: 'undefined is not greater than a number; the check satisfies the type checker.',
  },
  {
    file: 'src/token-handler/logout/provider-logouts.ts',
    text: "function endMark({ tenantId, clientId, sid, sub = '' }: Omit<ProviderLogout, 'jti' | 'algorithm'>): string {",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'the person is only read in a logout without a session, which names one.',
  },
  {
    file: 'src/token-handler/logout/provider-logouts.ts',
    text: "return `ended:${digest(tenantId, clientId, ...(sid === undefined ? ['sub', sub] : ['sid', sid]))}`;",
    changes: [
      ["'sub'", '""'],
      ["'sid'", '""'],
    ],
    kind: 'equivalent',
    why: 'the names of both kinds still differ.',
  },
  {
    file: 'src/token-handler/logout/provider-logouts.ts',
    text: "return hash('sha256', parts.join('\\n'), 'base64url');",
    changes: [["'base64url'", '""']],
    kind: 'equivalent',
    why: 'the digest has another encoding, but names the same mark.',
  },
];
