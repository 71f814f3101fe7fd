// Requests and responses that are an app's from their beginning. Express gives each of them another prototype when it comes,
// and V8 gives up their fast properties then; one that has it already stays as it is.
import type { Express } from 'express';
import { IncomingMessage, ServerResponse } from './node-http.ts';

/** What `createServer` has to make the app's messages of. */
export function messagesOf(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  Object.setPrototypeOf(AppRequest.prototype, app.request);
  Object.setPrototypeOf(AppResponse.prototype, app.response);
  // Express compares with these.
  app.request = AppRequest.prototype as Express['request'];
  app.response = AppResponse.prototype as Express['response'];
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}
