// Responds to a failed sign-in or logout with a page if the browser asks for HTML, and otherwise with problem+json. The
// response keeps the status and the headers of the problem. A page contains nothing from the request except the request
// id.
import type { Request, Response } from 'express';
import type { Problem } from '../../service/http/problem.ts';
import type { PresentProblem } from '../../service/http/problem-handler.ts';
import { queryOf } from '../../service/http/request-context.ts';
import type { StartedSignIn } from '../sign-in/sign-in.ts';
import { actionFor } from './actions.ts';
import { type Endpoint, pageFor, type SignInFacts } from './catalogue.ts';
import { renderFailurePage } from './failure-page.ts';
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

/** API documentation of the header that chooses the language of a page. */
export const pageLanguage = {
  'Accept-Language': 'If the request fails and `Accept` prefers `text/html`: the language of the page, en or fr',
};

/** API documentation of the routes whose failures may be pages. */
export const failuresAsPages = 'If the request fails and `Accept` prefers `text/html`, the response is a page.';

/** Stores checked facts about a sign-in, so that a failure page can name the client and link to a new sign-in. */
export function noteSignIn({ locals }: Response, facts: SignInFacts): void {
  locals.signInFacts = { ...locals.signInFacts, ...facts };
}

// Matches the paths of the three routes as the router does. The matched route itself is not enough, because a request
// may fail before the router has found its route.
const pattern = /^\/token-handler(?:\/v1)?\/clients\/[^/]+\/(auth|callback|logout)\/?$/i;

export function presentFailures(settings: PageSettings): PresentProblem {
  const styles = stylesheetOf(settings.palettes);
  const headers = {
    'Content-Security-Policy': policyOf(styles, settings.logo),
    // The address of a callback contains an authorization code, which must not reach other sites.
    'Referrer-Policy': 'no-referrer',
  };
  return (problem, request, response) => {
    const endpoint = pattern.exec(request.path)?.[1]?.toLowerCase() as Endpoint | undefined;
    if (endpoint === undefined) return undefined;
    response.vary('Accept, Accept-Language');
    if (request.accepts(['application/problem+json', 'application/json', 'text/html']) !== 'text/html')
      return undefined;
    const { requestId, signInFacts: facts = {} } = response.locals;
    const { tenant, client, attempt } = facts;
    const name = pageFor(endpoint, problem.slug, facts);
    const language = languageOf(request, attempt);
    const action = actionFor({ endpoint, page: name, status: problem.status, attempt });
    const wait = name === 'rate-limited' ? secondsOf(problem) : undefined;
    const shown = { name, language, requestId, action, wait, client, tenant };
    const body = renderFailurePage(shown, settings, styles);
    return { contentType: 'text/html; charset=utf-8', body, headers: { ...headers, 'Content-Language': language } };
  };
}

/** Returns the value of Retry-After in seconds (RFC 9110 section 10.2.3). */
function secondsOf({ headers }: Problem): number | undefined {
  const text = headers['Retry-After'] ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the first available of: a language that the sign-in asks for (OpenID Connect Core 3.1.2.1), a language that
 * the browser prefers, English.
 */
function languageOf(request: Request, attempt: StartedSignIn | undefined): Language {
  const asked = attempt?.asked?.ui_locales ?? queryOf(request).ui_locales;
  const named = (typeof asked === 'string' ? asked.split(' ') : [])
    .map((tag) => languages.find((language) => language === tag.toLowerCase().split('-', 1)[0]))
    .find((language) => language !== undefined);
  return named ?? ((request.acceptsLanguages([...languages]) || 'en') as Language);
}
