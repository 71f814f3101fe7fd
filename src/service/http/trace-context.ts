// Reads and begins traces (W3C Trace Context).
import { hash } from 'node:crypto';

// W3C Trace Context section 3.2.2: version 00. Ids that consist of zeros are invalid.
const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && traceparentPattern.test(text);
}

/**
 * Returns the header of a trace that begins here, because the client sent none (W3C Trace Context section 3.2). The
 * trace id is derived from the request id, so that it leads to the log line. The trace is not marked as sampled.
 */
export function newTraceparent(requestId: string): string {
  const hex = requestId.replaceAll('-', '');
  // The second half of a UUID is never zero (RFC 9562 section 4.1).
  const traceId = uuidPattern.test(requestId) ? hex : hash('sha256', requestId).slice(0, 32);
  return `00-${traceId}-${traceId.slice(16)}-00`;
}

const uuidPattern = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
