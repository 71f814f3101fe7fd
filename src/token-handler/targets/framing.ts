// Refuses messages whose framing undici or Node would change or lose on the way: pure. What passes here is forwarded with
// the same length, the same coding and the same protocol (RFC 9110, RFC 9112).
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Problem } from '../../service/http/problem.ts';
import { upgradeOf } from '../../service/http/upgrades.ts';
import { connectionNames } from './request-headers.ts';

/**
 * Throws Problem `body-too-large` for a Content-Length that a double cannot hold: undici would forward other digits
 * (RFC 9110 section 8.6).
 */
export function checkRequestLength({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const length = headers['content-length'];
  if (length !== undefined && length.length > 15 && !Number.isSafeInteger(Number(length)))
    throw new Problem('body-too-large', 'The Content-Length is larger than any body that can be forwarded.');
}

/** Bytes of informational responses that may wait for a client that reads slowly: back-pressure does not cover them. */
const mostInformation = 65_536;

/** Throws an Error, which is a 502, for a response that cannot be forwarded as it is. */
export function checkResponse(status: number, headers: IncomingHttpHeaders, request: IncomingMessage): void {
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
export function mayHaveTrailers(status: number, headers: IncomingHttpHeaders, request: IncomingMessage): boolean {
  const hasBody = request.method !== 'HEAD' && status !== 204 && status !== 304;
  return hasBody && request.httpVersionMinor > 0 && headers['transfer-encoding'] !== undefined;
}
