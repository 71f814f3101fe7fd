// Rejects requests that HTTP/1.1 forbids but Node's parser accepts. Two servers could disagree about the host, the
// length or the credentials of such a request.
import type { IncomingMessage } from 'node:http';
import { Problem } from './problem.ts';

type Framed = Pick<IncomingMessage, 'method' | 'headers' | 'rawHeaders' | 'httpVersionMinor'>;

const allowed = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** Matches a name, an IPv4 address or an IPv6 address in brackets, with an optional port (RFC 3986 section 3.2). */
const hostForm = /^(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/**
 * Checks the framing and the headers of a request. Throws Problem `invalid-request`, or `method-not-allowed` for
 * CONNECT.
 */
export function checkFraming({ method, headers, rawHeaders, httpVersionMinor }: Framed): void {
  if (method === 'CONNECT')
    throw new Problem('method-not-allowed', 'This service does not support CONNECT.', { headers: { Allow: allowed } });
  const { expect, host } = headers;
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') throw unknownExpectation();
  // Node itself rejects an HTTP/1.1 request without a Host header.
  if (host !== undefined && (!hostForm.test(host) || isRepeated('host', rawHeaders)))
    throw new Problem('invalid-request', 'The request needs exactly one Host header with a valid host.');
  if (headers.authorization !== undefined && isRepeated('authorization', rawHeaders)) throw twoAuthorizations();
  // RFC 9112 section 6.1: the framing of an HTTP/1.0 message with a Transfer-Encoding is faulty.
  if (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined)
    throw new Problem('invalid-request', 'An HTTP/1.0 request cannot have a transfer coding.');
}

/** True if the headers announce a body (RFC 9112 section 6). */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

/**
 * True if a request has several headers of this name. Node keeps only the first of them. RFC 9112 section 3.2 requires
 * a 400 for several Host headers. `header` is in lower case.
 */
function isRepeated(header: string, rawHeaders: readonly string[]): boolean {
  let isSecond = false;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length !== header.length || name.toLowerCase() !== header) continue;
    if (isSecond) return true;
    isSecond = true;
  }
  return false;
}

/** RFC 9110 section 10.1.1 defines one expectation. */
function unknownExpectation(): Problem {
  const errors = [{ pointer: '/headers/expect', detail: 'must be 100-continue, or absent' }];
  return new Problem('invalid-request', 'The request has an unknown expectation.', { errors });
}

/**
 * RFC 9110 sections 5.3 and 11.6.2 allow one Authorization header. With two, a proxy could check one of them, and this
 * service could read the other. The response has the challenge that RFC 6750 section 3.1 defines for a malformed
 * request.
 */
function twoAuthorizations(): Problem {
  return new Problem('invalid-request', 'The request has more than one Authorization header.', {
    errors: [{ pointer: '/headers/authorization', detail: 'must be sent once' }],
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_request"' },
  });
}
