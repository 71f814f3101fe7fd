// Which headers of a request go on to the upstream: pure. The session's cookie, CSRF token, tenant and whatever claims to
// know where the request came from stay here; the access token and what we know ourselves take their place.
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export interface Forwarded {
  /** Of the client, as trusted proxies tell. */
  address: string;
  host: string | undefined;
  protocol: string;
}

export interface AddedHeaders {
  accessToken: string;
  forwarded: Forwarded;
  traceparent: string;
  /** Whether the trace begins here, so that the client's `tracestate` does not belong to it. */
  isNewTrace: boolean;
}

/** Headers as undici takes them: names and values by turns. */
export type HeaderList = string[];

// RFC 9110 section 7.6.1 and the older RFC 2616 section 13.5.1; `Trailer`, because undici sends none; `HTTP2-Settings`
// belongs to an upgrade that is not relayed.
const hopByHop = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];

const dropped = new Set([
  ...hopByHop,
  'authorization',
  'content-length',
  'cookie',
  'expect',
  'forwarded',
  'host',
  'traceparent',
  'x-xsrf-token',
  // They name another path to servers that believe them, and so would lead out of the base path.
  'x-original-url',
  'x-rewrite-url',
  // Where the client is, to servers that believe whoever stands before them: it would be what the client says itself.
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  // To CGI programs the address of a proxy for their own calls (CVE-2016-5385).
  'proxy',
]);

/** Names seen so far, as clients write them: there are few, and they are short. */
const rememberedNames = 1_000;
const longestRemembered = 100;

/** `tenantHeader`: its name. */
export function createRequestHeaders(tenantHeader: string) {
  const known = new Map<string, boolean>();
  const tenant = normalName(tenantHeader);
  const isDropped = (name: string) => {
    const normal = normalName(name);
    return dropped.has(normal) || normal.startsWith('x-forwarded-') || normal === tenant;
  };
  const passes = (name: string) => {
    const remembered = known.get(name);
    if (remembered !== undefined) return remembered;
    const answer = !isDropped(name);
    if (known.size < rememberedNames && name.length <= longestRemembered) known.set(name, answer);
    return answer;
  };
  return (
    { rawHeaders, headers }: Pick<IncomingMessage, 'rawHeaders' | 'headers'>,
    added: AddedHeaders,
  ): HeaderList => {
    const named = connectionNames(headers.connection);
    const list: HeaderList = [];
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index] as string;
      if (!passes(name) || named?.has(name.toLowerCase())) continue;
      if (added.isNewTrace && name.toLowerCase() === 'tracestate') continue;
      list.push(name, rawHeaders[index + 1] as string);
    }
    const { address, host, protocol } = added.forwarded;
    list.push(
      'Authorization',
      `Bearer ${added.accessToken}`,
      'X-Forwarded-For',
      address,
      'X-Forwarded-Proto',
      protocol,
    );
    if (host !== undefined) list.push('X-Forwarded-Host', host);
    list.push('traceparent', added.traceparent);
    const length = headers['content-length'];
    if (length !== undefined) list.push('Content-Length', length);
    return list;
  };
}

/** The headers that a Connection header declares to be of this hop only (RFC 9110 section 7.6.1), in lower case. */
export function connectionNames(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

/** CGI and its heirs make one variable of `X-Forwarded-For` and `X_Forwarded_For` (RFC 3875 section 4.1.18). */
function normalName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/**
 * A trace that begins here, where the client has none (W3C Trace Context section 3.2): named after the request, so that
 * its log line can be found, and not sampled, because nobody asked for it.
 */
export function newTraceparent(requestId: string): string {
  const hex = requestId.replaceAll('-', '');
  // The second half of a UUID is never zero (RFC 9562 section 4.1).
  const traceId = uuidPattern.test(requestId) ? hex : hash('sha256', requestId).slice(0, 32);
  return `00-${traceId}-${traceId.slice(16)}-00`;
}

const uuidPattern = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
