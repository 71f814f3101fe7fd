// Chooses the headers of an upstream's response that go back to the client. It drops cookies, which only the token handler
// sets, and hop-by-hop headers; keeps documents from running scripts in the frontend's origin; and refuses responses whose
// framing Node would change on the way (RFC 9110, RFC 9112).
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { upgradeOf } from '../../service/http/upgrades.ts';
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

/** Bytes of informational responses that may wait for a client that reads slowly: back-pressure does not cover them. */
const mostInformation = 65_536;

/** Throws an Error, which is a 502, for a response that cannot be forwarded as it is. */
function checkResponse(status: number, headers: IncomingHttpHeaders, request: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  // Node decodes `chunked` and no other coding. None was asked for with TE (RFC 9112 section 7.4).
  if (coding !== undefined && coding !== 'chunked' && String(coding).trim().toLowerCase() !== 'chunked')
    throw new Error('the response has a transfer coding other than chunked');
  if (status >= 200) return;
  // RFC 9110 section 15.2.2: only an upgrade that was asked for may be answered with 101.
  if (status === 101 && !(upgradeOf(request) && isWebSocketSwitch(headers)))
    throw new Error('the upstream switched to a protocol that was not asked for');
  if (request.socket.writableLength > mostInformation)
    throw new Error('the upstream sent too many informational responses');
}

/** RFC 6455 section 4.1 */
function isWebSocketSwitch({ upgrade, connection }: IncomingHttpHeaders): boolean {
  return String(upgrade).toLowerCase() === 'websocket' && connectionNames(String(connection))?.has('upgrade') === true;
}

/**
 * Whether trailers can follow the response. Node throws for a `Trailer` header without a chunked body, which HEAD, 204, 304
 * and HTTP/1.0 do not have (RFC 9112 section 7.1).
 */
function mayHaveTrailers(status: number, headers: IncomingHttpHeaders, request: IncomingMessage): boolean {
  const hasBody = request.method !== 'HEAD' && status !== 204 && status !== 304;
  return hasBody && request.httpVersionMinor > 0 && headers['transfer-encoding'] !== undefined;
}

/**
 * Browsers show these without running scripts in the page's origin. None ends with `+xml`: such a type is XML, and XML can
 * hold scripts (MIME Sniffing standard, section 4.6).
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

/** Values seen so far: upstreams send few different ones. */
const remembered = new Map<string, boolean>();
const mostRemembered = 500;
const longestRemembered = 100;

/**
 * Whether no browser that shows the response as a document would run scripts in it. Every unknown type counts as active.
 * `contentType`: of all Content-Type lines. Browsers combine the lines and take the last value that they can parse (Fetch
 * standard, "extract a MIME type"), but they differ in what they can parse: Chromium reads `text/html xxx` as HTML. So every
 * value has to be a known inert type, also where a quoted comma would only seem to begin another value.
 */
export function isInert(contentType: string | string[] | undefined): boolean {
  if (contentType === undefined) return false;
  if (typeof contentType !== 'string') return contentType.every(isInert);
  let isKnownInert = remembered.get(contentType);
  if (isKnownInert !== undefined) return isKnownInert;
  isKnownInert = contentType.split(',').every((value) => inertType.test(value));
  if (remembered.size < mostRemembered && contentType.length <= longestRemembered)
    remembered.set(contentType, isKnownInert);
  return isKnownInert;
}
