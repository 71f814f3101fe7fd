// Selects the request headers that are forwarded to the upstream. Drops cookies, the CSRF token, the tenant header, and
// every header in which a client could claim an identity or an address. Adds the access token, the client's address,
// the request id and the trace.
import type { IncomingMessage } from 'node:http';
import type { Forwarded } from '../../service/http/client-address.ts';
import { remembered } from './remembered.ts';
import { createHeaderMatcher, untrustedHeaders } from './untrusted-headers.ts';

export interface AddedHeaders {
  accessToken: string;
  forwarded: Forwarded;
  requestId: string;
  traceparent: string;
  /** True if the token handler started the trace. The client's `tracestate` then belongs to another trace. */
  isNewTrace: boolean;
}

/** Headers in the form that undici expects: names and values alternate. */
export type HeaderList = string[];

// Hop-by-hop headers of RFC 9110 section 7.6.1 and of the older RFC 2616 section 13.5.1. `Trailer` is dropped because
// undici sends no trailers. `HTTP2-Settings` is dropped because the proxy does not forward the upgrade to HTTP/2.
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

const dropped = [
  ...hopByHop,
  'authorization',
  'content-length',
  'cookie',
  'expect',
  'host',
  'traceparent',
  'x-request-id',
  'x-xsrf-token',
  ...untrustedHeaders.flatMap(({ names }) => names),
];

/** Limits of the cache for decisions about header names. Clients send few different names. */
const rememberedNames = { most: 1_000, longest: 100 };

export interface RequestHeadersOptions {
  /** Name of the request header in which the reverse proxy of a domain names the tenant of that domain. */
  tenantHeader: string;
  /** Names of further headers to drop. A name may end with `*`. */
  alsoDropped: readonly string[];
}

export function createRequestHeaders({ tenantHeader, alsoDropped }: RequestHeadersOptions) {
  const isDropped = createHeaderMatcher([...dropped, tenantHeader, ...alsoDropped]);
  const passes = remembered((name) => !isDropped(name), rememberedNames);
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
    list.push('X-Request-Id', added.requestId, 'traceparent', added.traceparent);
    const length = headers['content-length'];
    if (length !== undefined) list.push('Content-Length', length);
    return list;
  };
}

/**
 * Returns, in lower case, the header names that a Connection header lists. These headers must not be forwarded (RFC
 * 9110, section 7.6.1).
 */
export function connectionNames(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}
