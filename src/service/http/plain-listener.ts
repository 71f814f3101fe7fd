// A request listener beside Express, for requests whose path and body must not be parsed. It gives them what every other
// request gets: an id, the standard headers, framing checks, a log line, a duration in the histogram, and problem details.
import type { IncomingMessage, RequestListener } from 'node:http';
import { createProblemSender } from './problem-handler.ts';
import { beginRequest, type HttpResponse, type RequestRecorders } from './request-context.ts';
import { checkFraming } from './request-framing.ts';

export interface PlainHandler {
  /** The pattern of the request's route, for its log line and its duration. */
  routeOf(request: IncomingMessage): string;
  /** Sends the head with `writeHead` (request-context.ts). May reject with a Problem, which becomes the response. */
  serve(request: IncomingMessage, response: HttpResponse): Promise<void>;
}

export function createPlainListener(recorders: RequestRecorders, { routeOf, serve }: PlainHandler): RequestListener {
  const begin = beginRequest(recorders);
  const sendProblem = createProblemSender(recorders.metrics);
  return async (request, plainResponse) => {
    const response = begin(request, plainResponse);
    response.locals.route = routeOf(request);
    try {
      checkFraming(request);
      await serve(request, response);
    } catch (error) {
      sendProblem(error, request, response);
    }
  };
}
