// Sends the error that ended a request as application/problem+json. An error that is not a Problem becomes a bare 500, or
// the problem that fits an invalid request or an unreachable database.
import type { IncomingMessage } from 'node:http';
import type { ErrorRequestHandler } from 'express';
import type { Metrics } from '../operations/metrics.ts';
import { databaseProblem } from '../postgres/postgres.ts';
import { STATUS_CODES } from './node-http.ts';
import { invalidRequest, Problem, problemBody } from './problem.ts';
import { type HttpResponse, setPendingHeaders } from './request-context.ts';

export type SendProblem = (error: unknown, request: IncomingMessage, response: HttpResponse) => void;

/** Logs the cause of a 5xx in the log line of the request. */
export function createProblemSender(metrics: Metrics): SendProblem {
  return (error, request, response) => {
    const problem = toProblem(error, metrics);
    if (problem.status >= 500) response.locals.failure = error;
    // A response that has begun cannot become a problem. Closing the connection shows the client that the response is
    // incomplete. Express' own handler would do the same, but print the error to standard error instead of the log.
    if (response.headersSent) response.destroy();
    else writeProblem(problem, request, response);
  };
}

/** Returns the error handler to register last in an Express app. */
export function problemHandler(metrics: Metrics): ErrorRequestHandler {
  const send = createProblemSender(metrics);
  // Express recognises an error handler by its four parameters.
  return (error, request, response, _next) => send(error, request, response);
}

function writeProblem(problem: Problem, request: IncomingMessage, response: HttpResponse): void {
  // `instance` is the path without the query: a query may carry a code.
  const body = Buffer.from(JSON.stringify(problemBody(problem, pathOf(request.url))));
  setPendingHeaders(response);
  response.statusCode = problem.status;
  // The failed handler may have set another reason phrase.
  response.statusMessage = STATUS_CODES[problem.status] ?? '';
  for (const [name, value] of Object.entries(problem.headers)) response.setHeader(name, value);
  response.setHeader('Content-Type', 'application/problem+json; charset=utf-8');
  response.setHeader('Content-Length', body.length);
  response.end(body);
}

/** Returns the path of a request target in origin form or absolute form (RFC 9112 section 3.2). */
function pathOf(url = ''): string {
  return /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i.exec(url)?.[1] ?? '';
}

function toProblem(error: unknown, metrics: Metrics): Problem {
  if (error instanceof Problem) return error;
  const fromDatabase = databaseProblem(error);
  if (fromDatabase) {
    if (fromDatabase.status === 503) metrics.dependencyFailures.inc({ dependency: 'postgres', kind: 'request' });
    return fromDatabase;
  }
  // Express' router throws URIError for a path that is not percent-encoded UTF-8.
  if (error instanceof URIError)
    return invalidRequest([{ pointer: '/params', detail: 'is not percent-encoded UTF-8' }]);
  const status = (error as { status?: unknown } | undefined)?.status;
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new Problem('invalid-request', 'The request cannot be read.', { cause: error });
  return new Problem('internal', undefined, { cause: error });
}
