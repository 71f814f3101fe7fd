// Which headers of an upstream's answer go back to the client: pure. Cookies are for the token handler alone to set, and
// hop-by-hop headers end with the hop.
import type { IncomingHttpHeaders } from 'node:http';
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
  // Ours is in the log line.
  'x-request-id',
  // Would let other origins of the site read, with the session's cookie, what is for the frontend's origin only.
  'access-control-allow-credentials',
]);

/** `status` decides about the length: an answer without content has none (RFC 9110 section 8.6). */
export function answerHeaders(headers: IncomingHttpHeaders, status: number): AnswerHeaders {
  const named = connectionNames(asText(headers.connection));
  const isFramed = headers['transfer-encoding'] === undefined && status !== 204 && status >= 200;
  const answer: AnswerHeaders = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || dropped.has(name) || named?.has(name)) continue;
    if (name === 'content-length' && !isFramed) continue;
    answer[name] = value;
  }
  return answer;
}

/** Whether the answer lasts, with ends of its own for each event. */
export function isEventStream(answer: AnswerHeaders): boolean {
  return String(answer['content-type']).startsWith('text/event-stream');
}

/** Documents that a browser runs scripts of: HTML, and XML of whatever kind, SVG included. */
const activeType = /^(?:text\/html|[^;,]*[/+]xml)\s*(?:[;,]|$)/i;

/**
 * Adds what the upstream does not say itself. `own`: by name. A document that comes through a target has the origin of the
 * frontend: its scripts, somebody's upload perhaps, could read the CSRF token and call every target. So they do not run,
 * unless the upstream has a policy of its own.
 */
export function addOwn(answer: AnswerHeaders, own: Readonly<Record<string, string>>): void {
  const type = answer['content-type'];
  if (type !== undefined && answer['content-security-policy'] === undefined && activeType.test(String(type)))
    answer['Content-Security-Policy'] = 'sandbox';
  for (const name of Object.keys(own)) if (answer[name.toLowerCase()] === undefined) answer[name] = own[name] as string;
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
