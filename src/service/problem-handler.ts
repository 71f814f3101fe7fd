// Turns whatever a request failed with into application/problem+json. A failure that is not a Problem is answered
// with a bare 500 or, where it stems from the request or from an unreachable database, with the row that fits.
import type { ErrorRequestHandler, Request, Response } from 'express';
import { databaseProblem } from './postgres.ts';
import { Problem, problemBody } from './problem.ts';

/** Express' last handler. The request's own log line carries the cause of a 5xx. */
export function problemHandler(): ErrorRequestHandler {
  return (error, request, response, next) => {
    const problem = toProblem(error);
    if (problem.status >= 500) response.locals.failure = error;
    if (response.headersSent) return next(error);
    sendProblem(problem, request, response);
  };
}

export function sendProblem(problem: Problem, request: Request, response: Response): void {
  // `instance` is the path without the query: a query may carry a code.
  response.status(problem.status).set(problem.headers).type('application/problem+json');
  response.send(JSON.stringify(problemBody(problem, request.path)));
}

export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const cause = { cause: error };
  const httpError = error as { type?: unknown; status?: unknown };
  switch (httpError?.type) {
    case 'entity.too.large':
      return new Problem('body-too-large', 'The body is larger than this service accepts.', cause);
    case 'encoding.unsupported':
    case 'charset.unsupported':
      return new Problem('unsupported-media-type', 'The body must be JSON in UTF-8.', cause);
    case 'entity.parse.failed':
      return new Problem('malformed-json', 'The body is not well-formed JSON.', { ...cause, errors: [wholeBody] });
    default:
  }
  const fromDatabase = databaseProblem(error);
  if (fromDatabase) return fromDatabase;
  // body-parser and the router mark what the client did wrong: a cut body, a path that is not percent-encoded UTF-8.
  if (typeof httpError?.status === 'number' && httpError.status >= 400 && httpError.status < 500)
    return new Problem('invalid-request', 'The request cannot be read.', cause);
  return new Problem('internal', undefined, cause);
}

const wholeBody = { pointer: '', detail: 'is not well-formed JSON' };
