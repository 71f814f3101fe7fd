// The mutants that survive in the routes that list and end sessions, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const sessionRoutes: readonly Explanation[] = [
  {
    file: 'src/token-handler/sessions/routes.ts',
    text: "audit: { unaudited: 'It only sets the CSRF cookie again.' },",
    changes: [["'It only sets the CSRF cookie again.'", '""']],
    kind: 'text for people',
    why: 'the reason in the list of routes without audit events.',
  },
];
