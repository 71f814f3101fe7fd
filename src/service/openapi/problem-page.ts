// Serves a problem type at /problems/<slug>, as a page without scripts or as JSON.
import type { Request, Response } from 'express';
import { z } from 'zod';
import { anonymous, type Route, route } from '../http/http-app.ts';
import { Problem, problemUrn } from '../http/problem.ts';
import { findProblemType, type ProblemType } from '../http/problem-types.ts';
import { html, page, prose } from './html.ts';
import { pagePolicy, pageStylesheet } from './page-stylesheet.ts';

const stylesheet = `${pageStylesheet}body { max-width: 45rem; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .4rem; }
p { margin: 0 0 .75rem; overflow-wrap: anywhere; }
`;

const policy = pagePolicy(stylesheet);

const params = z.object({ slug: z.string().max(100) });

/**
 * Creates the route of the problem types. It responds with HTML, or with JSON if the Accept header prefers it, and with
 * 404 for an unknown slug.
 */
export function problemTypeRoute(): Route {
  return route({
    method: 'get',
    path: '/problems/:slug',
    summary: 'The meaning of a problem type, and what a caller should do',
    guards: [anonymous],
    params,
    responses: { 200: { description: 'HTML or JSON' }, 404: { description: 'There is no such problem type' } },
    handle: (input, request, response) => sendProblemType(input.params.slug, request, response),
  });
}

function sendProblemType(slug: string, request: Request, response: Response): void {
  const type = findProblemType(slug);
  if (!type) throw new Problem('not-found', 'There is no such problem type.');
  response.set('Cache-Control', 'max-age=300').vary('Accept');
  if (request.accepts(['html', 'json']) === 'json') {
    response.type('application/json').send(JSON.stringify({ type: problemUrn(slug), ...type }));
    return;
  }
  response.set({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
  response.type('text/html').send(problemPage(slug, type));
}

function problemPage(slug: string, { status, title, meaning, action }: ProblemType): string {
  const body = html`<main>
<h1>${title}</h1>
<p class="quiet">HTTP status ${status}, type <code>${problemUrn(slug)}</code></p>
<h2>What it means</h2>
<p>${prose(meaning)}</p>
<h2>What to do</h2>
<p>${prose(action)}</p>
</main>`;
  return page({ title: `${title}: problem ${slug}`, styles: stylesheet, body });
}
