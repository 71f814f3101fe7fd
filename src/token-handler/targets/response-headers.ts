// Selects which headers of an upstream's response the client receives. Drops hop-by-hop headers, and headers that would
// change the browser's state for the whole origin of the frontend, such as cookies. Prevents documents from running
// scripts in this origin, and limits which caches may reuse a response. Rejects responses whose framing Node would
// change (RFC 9110, RFC 9112).
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { upgradeOf } from '../../service/http/upgrades.ts';
import { asText, limitCaches } from './cache-limits.ts';
import { originWideHeaders } from './origin-wide-headers.ts';
import { remembered } from './remembered.ts';
import { connectionNames } from './request-headers.ts';

/** Headers, keyed by their names in lower case. */
export type ResponseHeaders = Record<string, string | string[]>;

/** Headers that the client never gets, in any case. */
export const droppedNames = [
  // Hop-by-hop headers (RFC 9110 section 7.6.1).
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  ...originWideHeaders.flatMap(({ names }) => names),
  // The token handler sets this header to the request id of its log line.
  'x-request-id',
  // The token handler always sets this header to `nosniff`.
  'x-content-type-options',
  // A web server in front of the token handler would obey these headers, and send one of its own files or URLs instead
  // of the response.
  ...['x-accel-redirect', 'x-sendfile', 'x-lighttpd-send-file', 'x-reproxy-url', 'x-reproxy-file'],
  // This header would let other origins of the same site read responses to requests with the session cookie.
  'access-control-allow-credentials',
];
const dropped = new Set(droppedNames.map((name) => name.toLowerCase()));

/**
 * Returns the headers for the client. Drops the Content-Length of a response that has a Transfer-Encoding, or whose
 * status allows no content (RFC 9110 section 8.6). Throws an Error for a response that cannot be forwarded unchanged.
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
  if (status >= 200) {
    restrictDocument(passedOn, status);
    limitCaches(passedOn, status);
  }
  return passedOn;
}

/** True if the response is an event stream, which can end after any event. */
export function isEventStream(passedOn: ResponseHeaders): boolean {
  return String(passedOn['content-type']).startsWith('text/event-stream');
}

/**
 * Adds a Content-Security-Policy to documents, so that the browser runs none of their scripts. A document from a target
 * has the frontend's origin. Its scripts, for example in an uploaded file, could otherwise read the CSRF token and call
 * every target.
 */
function restrictDocument(passedOn: ResponseHeaders, status: number): void {
  const type = passedOn['content-type'];
  // A 304 updates the headers of the cached response (RFC 9111 section 3.2), so a policy from the upstream would
  // replace the policy that was set here. A 304 or 204 without a type does not show whether the document is inert.
  const saysNothing = type === undefined && (status === 304 || status === 204);
  if (!saysNothing && !isInert(type)) passedOn['content-security-policy'] = 'sandbox';
  else if (status === 304) delete passedOn['content-security-policy'];
}

// RFC 9110 section 6.5.1 forbids trailers that concern framing, routing, authentication or cookies.
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

/** Throws an Error, which becomes a 502, for a response that cannot be forwarded unchanged. */
function checkResponse(status: number, headers: IncomingHttpHeaders, request: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  // undici decodes only the coding `chunked`, and the proxy has sent no TE header (RFC 9112 section 7.4).
  if (coding !== undefined && coding !== 'chunked' && String(coding).trim().toLowerCase() !== 'chunked')
    throw new Error('the response has a transfer coding other than chunked');
  if (status >= 200) return;
  // A 101 is valid only if the client requested the upgrade (RFC 9110 section 15.2.2).
  if (status === 101 && !(upgradeOf(request) && isWebSocketSwitch(headers)))
    throw new Error('the upstream switched to a protocol that was not asked for');
}

/** True if the headers of a response switch to the WebSocket protocol (RFC 6455 section 4.1). */
function isWebSocketSwitch({ upgrade, connection }: IncomingHttpHeaders): boolean {
  return String(upgrade).toLowerCase() === 'websocket' && connectionNames(String(connection))?.has('upgrade') === true;
}

/**
 * True if the response may have trailers. If it has no chunked body, Node throws for a `Trailer` header. Responses with
 * status 204 or 304, responses to HEAD, and responses to HTTP/1.0 requests have no chunked body (RFC 9112 section 7.1).
 */
function mayHaveTrailers(status: number, headers: IncomingHttpHeaders, request: IncomingMessage): boolean {
  const hasBody = request.method !== 'HEAD' && status !== 204 && status !== 304;
  return hasBody && request.httpVersionMinor > 0 && headers['transfer-encoding'] !== undefined;
}

/**
 * Types that browsers show without running scripts in the page's origin. The list has no type that ends in `+xml`,
 * because XML can contain scripts (MIME Sniffing standard, section 4.6).
 */
const inertType = new RegExp(
  [
    '^[\\t ]*(?:',
    'text/(?:plain|csv|css|calendar|markdown|vtt|event-stream)',
    '|image/(?:png|apng|jpeg|jpg|gif|webp|avif|heic|heif|jxl|bmp|tiff|x-icon|vnd\\.microsoft\\.icon)',
    '|(?:audio|video|font)/[\\w.-]+',
    '|application/(?:[\\w.-]+\\+)?json',
    '|application/(?:pdf|octet-stream|zip|gzip|x-ndjson|jsonl|msgpack|cbor|wasm|msword|rtf)',
    '|application/vnd\\.(?:ms-(?:excel|powerpoint)|(?:openxmlformats-officedocument|oasis\\.opendocument)\\.[\\w.-]+)',
    ')[\\t ]*(?:;.*)?$',
  ].join(''),
  'i',
);

/** Limits of the cache for decisions about content types. Upstreams send few different values. */
const rememberedTypes = { most: 500, longest: 100 };
const isInertText = remembered(
  (contentType) => contentType.split(',').every((value) => inertType.test(value)),
  rememberedTypes,
);

/**
 * True if no browser runs scripts when it shows the response as a document. Returns false for unknown types. Browsers
 * combine all Content-Type lines and take the last value that they can parse (Fetch standard, "extract a MIME type").
 * Their parsers differ: Chromium reads `text/html xxx` as HTML. Therefore, every value must be a known inert type.
 * Here, commas in quotes also separate values, which is stricter than the standard.
 */
export function isInert(contentType: string | string[] | undefined): boolean {
  if (contentType === undefined) return false;
  return typeof contentType === 'string' ? isInertText(contentType) : contentType.every(isInertText);
}
