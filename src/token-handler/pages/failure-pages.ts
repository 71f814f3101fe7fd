// Shows a failed sign-in or logout as a page to browsers that ask for HTML. Status and headers stay those of the
// problem; other clients get problem+json. Nothing from the request reaches a page except its id.
import type { Request, Response } from 'express';
import type { Problem } from '../../service/http/problem.ts';
import type { PresentProblem } from '../../service/http/problem-handler.ts';
import { callbackUrlProblem } from '../sign-in/sign-in.ts';
import { type Endpoint, type PageName, pageFor, type SignInFacts, type StartedSignIn } from './catalogue.ts';
import { type Action, renderFailurePage } from './failure-page.ts';
import type { PageSettings } from './settings.ts';
import { policyOf, stylesheetOf } from './stylesheet.ts';
import { type Language, languages } from './texts.ts';

declare global {
  namespace Express {
    interface Locals {
      signInFacts?: SignInFacts;
    }
  }
}

/** Describes the header that chooses the language, for the routes. */
export const pageLanguage = {
  'Accept-Language': 'If the request fails and `Accept` prefers `text/html`: the language of the page, en or fr',
};

/** Adds what has been checked about a sign-in, so that its page can name it and link to a new sign-in. */
export function noteSignIn({ locals }: Response, facts: SignInFacts): void {
  locals.signInFacts = { ...locals.signInFacts, ...facts };
}

// The path as the router matches it. Also matches requests that fail before their route is found.
const pattern = /^\/token-handler(?:\/v1)?\/clients\/[^/]+\/(auth|callback|logout)\/?$/i;

export function presentFailures(settings: PageSettings): PresentProblem {
  const styles = stylesheetOf(settings.palettes);
  const headers = {
    'Content-Security-Policy': policyOf(styles, settings.logo),
    // The address of a callback contains a code.
    'Referrer-Policy': 'no-referrer',
  };
  return (problem, request, response) => {
    const endpoint = pattern.exec(request.path)?.[1]?.toLowerCase() as Endpoint | undefined;
    if (endpoint === undefined) return undefined;
    response.vary('Accept, Accept-Language');
    if (request.accepts(['application/problem+json', 'application/json', 'text/html']) !== 'text/html')
      return undefined;
    const { requestId, signInFacts: facts = {} } = response.locals;
    const name = pageFor(endpoint, problem.slug, facts);
    const language = languageOf(request, facts.attempt);
    const shown = {
      name,
      language,
      requestId,
      action: actionOf({ endpoint, problem, name, facts }),
      ...namesOf(facts),
    };
    const wait = name === 'rate-limited' ? secondsOf(problem) : undefined;
    const body = renderFailurePage({ ...shown, wait }, settings, styles);
    return { contentType: 'text/html; charset=utf-8', body, headers: { ...headers, 'Content-Language': language } };
  };
}

const namesOf = ({ client, tenant }: SignInFacts) => ({ client, tenant });

/** Returns the value of Retry-After in seconds (RFC 9110 section 10.2.3). */
function secondsOf({ headers }: Problem): number | undefined {
  const text = headers['Retry-After'] ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** The languages that the sign-in asks for (OpenID Connect Core 3.1.2.1), else those of the browser, else English. */
function languageOf(request: Request, attempt: StartedSignIn | undefined): Language {
  const asked =
    attempt?.asked?.ui_locales ?? new URLSearchParams(request.originalUrl.split('?', 2)[1]).get('ui_locales');
  const named = (asked ?? '')
    .split(' ')
    .map((tag) => languages.find((language) => language === tag.toLowerCase().split('-', 1)[0]))
    .find((language) => language !== undefined);
  return named ?? ((request.acceptsLanguages([...languages]) || 'en') as Language);
}

interface Failed {
  endpoint: Endpoint;
  problem: Problem;
  name: PageName;
  facts: SignInFacts;
}

/** The same request may succeed later. */
const repeatable = new Set<PageName>([
  'client-not-registered',
  'identity-provider-down',
  'service-unavailable',
  'rate-limited',
]);

/** Returns the link of the page. An empty reference leads to the page's own address. */
function actionOf({ endpoint, problem, name, facts: { attempt } }: Failed): Action {
  const restart = attempt && restartOf(attempt);
  if (endpoint === 'callback' && restart !== undefined) return { label: 'signInAgain', href: restart };
  if (problem.status >= 500 || repeatable.has(name)) return { label: 'tryAgain', href: '' };
  return { label: 'startPage', href: '/' };
}

/**
 * Returns the address that starts the sign-in again, relative to the callback's. Undefined for a callback of the
 * deprecated fallback, whose path the frontend's proxy may map in its own way.
 */
function restartOf({ tenantId, clientId, callbackUrl, returnTo, asked = {} }: StartedSignIn): string | undefined {
  if (callbackUrlProblem(callbackUrl, clientId) !== undefined) return undefined;
  const query = new URLSearchParams({ tenant: tenantId, callbackUrl });
  // A person who follows the link may be asked to sign in.
  const { prompt, ...others } = asked;
  const again = { ...others, returnTo, prompt: prompt === 'none' ? undefined : prompt };
  for (const [name, value] of Object.entries(again)) if (value !== undefined) query.set(name, value);
  return `auth?${query}`;
}
