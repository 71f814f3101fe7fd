// Chooses the headers of an upstream's response that go back to the client. It drops cookies, which only the token
// handler sets, and hop-by-hop headers, and keeps documents from running scripts in the frontend's origin.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { checkResponse, mayHaveTrailers } from './framing.ts';
import { isInert } from './media-type.ts';
import { connectionNames } from './request-headers.ts';

/** By lower-case name. */
export type ResponseHeaders = Record<string, string | string[]>;

const dropped = new Set([
  // RFC 9110 section 7.6.1
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  'set-cookie',
  'set-cookie2',
  // Could clear the session's cookie.
  'clear-site-data',
  // Would let a service worker control more of the frontend's origin than its own folder.
  'service-worker-allowed',
  // The token handler's own id is in the log line.
  'x-request-id',
  // The token handler always sets `nosniff`.
  'x-content-type-options',
  // Would let other origins of the site read responses with the session's cookie.
  'access-control-allow-credentials',
]);

/**
 * `status` decides about the length: a response without content has none (RFC 9110 section 8.6). Throws an Error for a
 * response that cannot be forwarded as it is.
 */
export function responseHeaders(
  headers: IncomingHttpHeaders,
  status: number,
  request: IncomingMessage,
): ResponseHeaders {
  checkResponse(status, headers, request);
  const named = connectionNames(asText(headers.connection));
  const isFramed = headers['transfer-encoding'] === undefined && status !== 204 && status >= 200;
  const passedOn: ResponseHeaders = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || dropped.has(name) || named?.has(name)) continue;
    if (name === 'content-length' && !isFramed) continue;
    if (name === 'trailer' && !mayHaveTrailers(status, headers, request)) continue;
    passedOn[name] = value;
  }
  if (status >= 200) restrictDocument(passedOn, status);
  return passedOn;
}

/** Whether the response is a stream of events, which each have an end. */
export function isEventStream(passedOn: ResponseHeaders): boolean {
  return String(passedOn['content-type']).startsWith('text/event-stream');
}

/**
 * Adds a policy to documents. A document from a target has the frontend's origin: its scripts (of an uploaded file, say)
 * could read the CSRF token and call every target. So the browser runs none.
 */
function restrictDocument(passedOn: ResponseHeaders, status: number): void {
  const type = passedOn['content-type'];
  // A 304 updates the headers of the response in the browser's cache (RFC 9111 section 3.2), and a policy of the upstream in
  // it would replace ours. Without a type it does not describe the document.
  const saysNothing = type === undefined && (status === 304 || status === 204);
  if (!saysNothing && !isInert(type)) passedOn['content-security-policy'] = 'sandbox';
  else if (status === 304) delete passedOn['content-security-policy'];
}

// RFC 9110 section 6.5.1: fields that frame, route, authenticate or set cookies have no place behind the content.
const droppedTrailers = new Set([
  ...dropped,
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'trailer',
  'host',
  'cache-control',
  'location',
  'vary',
  'www-authenticate',
]);

export function responseTrailers(trailers: IncomingHttpHeaders): ResponseHeaders | undefined {
  let passedOn: ResponseHeaders | undefined;
  for (const [name, value] of Object.entries(trailers)) {
    if (value === undefined || droppedTrailers.has(name)) continue;
    passedOn ??= {};
    passedOn[name] = value;
  }
  return passedOn;
}

function asText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}
