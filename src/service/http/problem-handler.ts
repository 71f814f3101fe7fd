// Turns whatever a request failed with into application/problem+json. A failure that is not a Problem is answered
// with a bare 500 or, where it stems from the request or from an unreachable database, with the row that fits.
import type { ErrorRequestHandler, Request, Response } from 'express';
import type { Metrics } from '../operations/metrics.ts';
import { databaseProblem } from '../postgres/postgres.ts';
import { STATUS_CODES } from './node-http.ts';
import { invalidRequest, Problem, problemBody } from './problem.ts';

/** Express' last handler. The request's own log line carries the cause of a 5xx. */
export function problemHandler(metrics: Metrics): ErrorRequestHandler {
  // Four parameters are what makes it an error handler to Express.
  return (error, request, response, _next) => {
    const problem = toProblem(error, metrics);
    if (problem.status >= 500) response.locals.failure = error;
    // An answer that has begun cannot become a problem; cut, so that the client does not take it for complete. Express'
    // own handler would do the same, and print the error past our log.
    if (response.headersSent) response.destroy();
    else sendProblem(problem, request, response);
  };
}

function sendProblem(problem: Problem, request: Request, response: Response): void {
  // What failed may have begun to write a head of its own, with another reason phrase.
  response.statusMessage = STATUS_CODES[problem.status] ?? '';
  // `instance` is the path without the query: a query may carry a code.
  response.status(problem.status).set(problem.headers).type('application/problem+json');
  response.send(JSON.stringify(problemBody(problem, pathOf(request))));
}

/** Of an address in absolute form that no URL parser takes, nothing. */
function pathOf(request: Request): string {
  try {
    return request.path;
  } catch {
    return '';
  }
}

function toProblem(error: unknown, metrics: Metrics): Problem {
  if (error instanceof Problem) return error;
  const fromDatabase = databaseProblem(error);
  if (fromDatabase) {
    if (fromDatabase.status === 503) metrics.dependencyFailures.inc({ dependency: 'postgres', kind: 'request' });
    return fromDatabase;
  }
  // The router's, for a path that is not percent-encoded UTF-8.
  if (error instanceof URIError)
    return invalidRequest([{ pointer: '/params', detail: 'is not percent-encoded UTF-8' }]);
  const status = (error as { status?: unknown } | undefined)?.status;
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new Problem('invalid-request', 'The request cannot be read.', { cause: error });
  return new Problem('internal', undefined, { cause: error });
}
