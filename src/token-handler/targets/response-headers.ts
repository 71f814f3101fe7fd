// Chooses the headers of an upstream's response that go back to the client: pure. It drops cookies, which only the token
// handler sets, and hop-by-hop headers, and keeps documents from running scripts in the frontend's origin.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { checkResponse, mayHaveTrailers } from './framing.ts';
import { isInert } from './media-type.ts';
import { connectionNames } from './request-headers.ts';

/** By lower-case name. */
export type AnswerHeaders = Record<string, string | string[]>;

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
  // May clear cookies, those of the session among them.
  'clear-site-data',
  // Would let a service worker control more of the frontend's origin than its own folder.
  'service-worker-allowed',
  // Ours is in the log line.
  'x-request-id',
  // Ours is never less strict.
  'x-content-type-options',
  // Would let other origins of the site read, with the session's cookie, what is for the frontend's origin only.
  'access-control-allow-credentials',
]);

/**
 * `status` decides about the length: a response without content has none (RFC 9110 section 8.6). Throws an Error for a
 * response that cannot be forwarded as it is.
 */
export function answerHeaders(headers: IncomingHttpHeaders, status: number, request: IncomingMessage): AnswerHeaders {
  checkResponse(status, headers, request);
  const named = connectionNames(asText(headers.connection));
  const isFramed = headers['transfer-encoding'] === undefined && status !== 204 && status >= 200;
  const answer: AnswerHeaders = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || dropped.has(name) || named?.has(name)) continue;
    if (name === 'content-length' && !isFramed) continue;
    if (name === 'trailer' && !mayHaveTrailers(status, headers, request)) continue;
    answer[name] = value;
  }
  return answer;
}

/** Whether the answer lasts, with ends of its own for each event. */
export function isEventStream(answer: AnswerHeaders): boolean {
  return String(answer['content-type']).startsWith('text/event-stream');
}

/**
 * Adds our own headers, and a policy for documents. A document that comes through a target has the frontend's origin: its
 * scripts, of an uploaded file perhaps, could read the CSRF token and call every target. So the browser runs none. `own`: by
 * name.
 */
export function addOwn(answer: AnswerHeaders, own: Readonly<Record<string, string>>, status: number): void {
  restrictDocument(answer, status);
  for (const name of Object.keys(own)) if (answer[name.toLowerCase()] === undefined) answer[name] = own[name] as string;
}

function restrictDocument(answer: AnswerHeaders, status: number): void {
  const type = answer['content-type'];
  // A 304 updates the headers of the response that the browser has kept (RFC 9111 section 3.2). A policy of the upstream in
  // it would replace ours. Without a type it says nothing of the document.
  const saysNothing = type === undefined && (status === 304 || status === 204);
  if (!saysNothing && !isInert(type)) answer['content-security-policy'] = 'sandbox';
  else if (status === 304) delete answer['content-security-policy'];
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

export function answerTrailers(trailers: IncomingHttpHeaders): AnswerHeaders | undefined {
  let answer: AnswerHeaders | undefined;
  for (const [name, value] of Object.entries(trailers)) {
    if (value === undefined || droppedTrailers.has(name)) continue;
    answer ??= {};
    answer[name] = value;
  }
  return answer;
}

function asText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}
