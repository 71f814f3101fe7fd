// Sends the error that ended a request as application/problem+json, or in a format that the app chooses. An error that
// is not a Problem usually becomes a 500 without details. The exceptions are errors that show an invalid request, or a
// busy or unavailable database.
import type { IncomingMessage } from 'node:http';
import type { ErrorRequestHandler, Request, Response } from 'express';
import type { Metrics } from '../operations/metrics.ts';
import { databaseProblem } from '../postgres/postgres.ts';
import { STATUS_CODES } from './node-http.ts';
import { invalidRequest, Problem, problemBody } from './problem.ts';
import { type HttpResponse, setPendingHeaders } from './request-context.ts';
import { resetSocket } from './reset-socket.ts';

export type SendProblem = (error: unknown, request: IncomingMessage, response: HttpResponse) => void;

/** The content of an error response. The status and the headers come from the problem. */
export interface ProblemContent {
  contentType: string;
  body: string;
  headers?: Record<string, string>;
}

/** Returns the content of a problem that the app presents in its own format, or undefined to send problem+json. */
export type PresentProblem = (problem: Problem, request: Request, response: Response) => ProblemContent | undefined;

/** Returns a function that sends the problem for an error. The log line of the request gets the cause of a 5xx. */
export function createProblemSender(metrics: Metrics): SendProblem {
  return (error, request, response) =>
    sendProblem(toProblem(error, metrics), { error, response, content: (problem) => problemJson(problem, request) });
}

/** Returns the error handler to register last in an Express app. */
export function problemHandler(metrics: Metrics, present: PresentProblem = () => undefined): ErrorRequestHandler {
  // Express recognises an error handler by its four parameters.
  return (error, request, response, _next) => {
    const content = (problem: Problem) => present(problem, request, response) ?? problemJson(problem, request);
    sendProblem(toProblem(error, metrics), { error, response, content });
  };
}

interface Failed {
  error: unknown;
  response: HttpResponse;
  content(problem: Problem): ProblemContent;
}

function sendProblem(problem: Problem, { error, response, content }: Failed): void {
  if (problem.status >= 500) response.locals.failure = error;
  // A response that has begun cannot become a problem. Closing the connection shows the client that the response is
  // incomplete. Express' own handler would also close the connection, but would print the error to standard error
  // instead of the log.
  if (response.headersSent) cutOff(response);
  else writeProblem(problem, content(problem), response);
}

function cutOff(response: HttpResponse): void {
  // To a client with HTTP/1.0, a closed connection may be the normal end of the body (RFC 9112 section 6.3). A reset is
  // not.
  if (response.req.httpVersionMinor === 0 && response.socket) resetSocket(response.socket);
  response.destroy();
}

function problemJson(problem: Problem, request: IncomingMessage): ProblemContent {
  // `instance` is the path without the query, because a query may contain a code.
  const body = JSON.stringify(problemBody(problem, pathOf(request.url)));
  return { contentType: 'application/problem+json; charset=utf-8', body };
}

function writeProblem(problem: Problem, content: ProblemContent, response: HttpResponse): void {
  const body = Buffer.from(content.body);
  setPendingHeaders(response);
  response.statusCode = problem.status;
  // The failed handler may have set a different reason phrase.
  response.statusMessage = STATUS_CODES[problem.status] ?? '';
  for (const [name, value] of Object.entries({ ...content.headers, ...problem.headers }))
    response.setHeader(name, value);
  response.setHeader('Content-Type', content.contentType);
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
