// The mutants that survive in the routes that list and end sessions, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const sessionRoutes: readonly Explanation[] = [
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: ".describe('The tenant of the cookie’s session; null while the tenant service cannot be reached'),",
    changes: [["'The tenant of the cookie’s session; null while the tenant service cannot be reached'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "id: z.string().describe('Public handle of the session; not the id in the cookie'),",
    changes: [["'Public handle of the session; not the id in the cookie'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "'When the session ends if no further request comes: idleExpiry, absoluteExpiry or the end of the refresh token, whichever is first',",
    changes: [
      [
        "'When the session ends if no further request comes: idleExpiry, absoluteExpiry or the end of the refresh token, whichever is first'",
        '""',
      ],
    ],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "idleExpiry: time.describe('Each request to a target postpones this time; reading this list does not'),",
    changes: [["'Each request to a target postpones this time; reading this list does not'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "absoluteExpiry: time.describe('The session ends then at the latest, regardless of requests'),",
    changes: [["'The session ends then at the latest, regardless of requests'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "core: z.boolean().describe('Whether the client is a core client'),",
    changes: [["'Whether the client is a core client'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: ".describe('URL that the browser opens to log out. Null for a session other than that of the cookie'),",
    changes: [["'URL that the browser opens to log out. Null for a session other than that of the cookie'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "top: z.coerce.number().int().min(1).max(100).default(100).describe('For administrators: sessions in a page'),",
    changes: [["'For administrators: sessions in a page'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "'For administrators: id of the last session of the page before, which may have ended within the last hour',",
    changes: [
      [
        "'For administrators: id of the last session of the page before, which may have ended within the last hour'",
        '""',
      ],
    ],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "tenantId: z.string().optional().describe('For administrators of core: the tenant'),",
    changes: [["'For administrators of core: the tenant'", '""']],
    kind: 'text for people',
    why: 'the documentation of a field.',
  },
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "audit: { unaudited: 'It only sets the CSRF cookie again.' },",
    changes: [["'It only sets the CSRF cookie again.'", '""']],
    kind: 'text for people',
    why: 'the reason in the list of routes without audit events.',
  },
];
