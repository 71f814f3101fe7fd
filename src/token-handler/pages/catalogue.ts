// Lists the pages that people see when a sign-in or a logout fails, and maps each problem type to a page. The texts of
// the pages are in `texts.ts`.
import type { ProblemSlug } from '../../service/http/problem-types.ts';
import type { StartedSignIn } from '../sign-in/sign-in.ts';

/** The routes of sign-in and logout to which a person navigates in a browser. */
export type Endpoint = 'auth' | 'callback' | 'logout';

/** The facts about a sign-in that have been checked so far. The request handler adds a fact after each check. */
export interface SignInFacts {
  /** Name of the tenant. */
  tenant?: string;
  /** Name of the client. Set after `tenant`. */
  client?: string;
  /** The ids of the tenant and the client. Set together with `client`. */
  checked?: { tenantId: string; clientId: string };
  /** The sign-in that this browser started, read from the stored attempt. */
  attempt?: StartedSignIn;
}

export const pageNames = [
  'sign-in-expired',
  'client-not-registered',
  'unknown-tenant',
  'unknown-client',
  'identity-provider-down',
  'service-unavailable',
  'rate-limited',
  'invalid-link',
  'sign-out-failed',
  'general',
] as const;

export type PageName = (typeof pageNames)[number];

/** The page for each problem type. A problem type that is not listed has the page `general`. */
const pages: Partial<Record<ProblemSlug, PageName>> = {
  'invalid-request': 'invalid-link',
  'method-not-allowed': 'invalid-link',
  'not-found': 'unknown-client',
  'registration-required': 'client-not-registered',
  'too-many-requests': 'rate-limited',
  'dependency-failed': 'service-unavailable',
  'dependency-timeout': 'service-unavailable',
  busy: 'service-unavailable',
  unavailable: 'service-unavailable',
};

export function pageFor(endpoint: Endpoint, slug: ProblemSlug, facts: SignInFacts): PageName {
  // One page for all problems: it says that the person may still be signed in.
  if (endpoint === 'logout') return 'sign-out-failed';
  if (endpoint === 'callback' && slug === 'invalid-request') return 'sign-in-expired';
  if (slug === 'not-found' && facts.tenant === undefined) return 'unknown-tenant';
  // Once the client is known, only the identity provider can still cause problems of these types.
  if (slug.startsWith('dependency-') && facts.client !== undefined) return 'identity-provider-down';
  return pages[slug] ?? 'general';
}
