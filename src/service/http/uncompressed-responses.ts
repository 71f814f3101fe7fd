// Refuses compressed responses of other services. fetch decompresses a response without a limit, so a compressed
// response of 1 MiB could take gigabytes of memory.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { ForwardingHandler } from './forwarding-handler.ts';

/**
 * An interceptor for agents of `fetch`. Asks for a response without a content coding (RFC 9110 section 12.5.3). A
 * response that has one nevertheless is an error of the request.
 */
export const uncompressedResponses: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (request, handler) => {
  // The headers that fetch passes are an object.
  const headers = { ...(request.headers as Record<string, string>), 'accept-encoding': 'identity' };
  return dispatch({ ...request, headers }, new UncompressedHandler(handler));
};

class UncompressedHandler extends ForwardingHandler {
  override onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText?: string,
  ): void {
    const coding = headers['content-encoding'];
    if (coding === undefined || coding === 'identity') super.onResponseStart(controller, status, headers, statusText);
    else
      controller.abort(new Error('the response is compressed, although the request asks for an uncompressed response'));
  }
}
