// A request listener that runs without Express, for requests whose path and body must not be parsed. As in Express
// apps, a request gets an id, the standard headers, framing checks, a log line, a duration in the histogram, and
// problem details.
import type { IncomingMessage, RequestListener } from 'node:http';
import { runInScope } from '../operations/request-scope.ts';
import { createProblemSender } from './problem-handler.ts';
import { beginRequest, type HttpResponse, type RequestRecorders } from './request-context.ts';
import { checkFraming } from './request-framing.ts';

export interface PlainHandler {
  /** Returns the pattern of the request's route, for the log line and the histogram. */
  routeOf(request: IncomingMessage): string;
  /**
   * Sends the head of the response with `writeHead` (request-context.ts). If `serve` rejects with a Problem, the client
   * gets that problem.
   */
  serve(request: IncomingMessage, response: HttpResponse): Promise<void>;
}

export function createPlainListener(recorders: RequestRecorders, { routeOf, serve }: PlainHandler): RequestListener {
  const begin = beginRequest(recorders);
  const sendProblem = createProblemSender(recorders.metrics);
  const handle = async (request: IncomingMessage, response: HttpResponse): Promise<void> => {
    response.locals.route = routeOf(request);
    try {
      checkFraming(request);
      await serve(request, response);
    } catch (error) {
      sendProblem(error, request, response);
    }
  };
  return (request, plainResponse) => {
    const response = begin(request, plainResponse);
    void runInScope(response.locals.scope, handle, request, response);
  };
}
