// Finds the upstream of a target: the directory's URL for the target's URN, if the operator's policy allows the host of
// this URL. Host names are not resolved. This module caches only the decision about a URL; the directory client caches
// the URL itself.
import { LRUCache } from 'lru-cache';
import type { Directory } from '../../platform/directory.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { withoutTrailingSlashes } from '../../service/url-text.ts';
import { Rejection } from '../rejection.ts';
import { type AllowedDomain, isAllowedUpstream, isPlatformUrn } from './upstream-policy.ts';

export interface Upstream {
  /** Scheme, host and port of the upstream's URL. */
  origin: string;
  /** Path of the upstream's URL without trailing slashes. Empty if this path is the root. */
  basePath: string;
}

export interface Upstreams {
  /**
   * Returns the upstream with this URN, which the tenant has chosen. Throws Problem `upstream-unresolved` or
   * `upstream-not-allowed`, Problem `busy` if the tenant asks for too many unknown URNs, and PlatformError if the
   * directory fails.
   */
  find(urn: string, tenant: string): Promise<Upstream>;
}

export interface UpstreamsOptions {
  directory: Pick<Directory, 'resolve'>;
  urnPrefix: string;
  /** Entries of UPSTREAM_ALLOWED_DOMAINS. Undefined if every host is allowed. */
  allowed: readonly AllowedDomain[] | undefined;
}

interface Known {
  url: string;
  /** Undefined if the policy does not allow the URL, if it is not an http(s) URL, or if it contains credentials. */
  upstream: Upstream | undefined;
}

export function createUpstreams({ directory, urnPrefix, allowed }: UpstreamsOptions): Upstreams {
  const known = new LRUCache<string, Known>({ max: 5_000 });

  function judge(urn: string, url: string): Upstream | undefined {
    const isChecked = allowed !== undefined && !isPlatformUrn(urn, urnPrefix);
    if (isChecked && !isAllowedUpstream(url, allowed)) return undefined;
    const { protocol, username, password, origin, pathname } = new URL(url);
    if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return undefined;
    return { origin, basePath: withoutTrailingSlashes(pathname) };
  }

  function upstreamAt(urn: string, url: string): Upstream {
    let judged = known.get(urn);
    if (judged?.url !== url) {
      judged = { url, upstream: judge(urn, url) };
      known.set(urn, judged);
    }
    if (judged.upstream) return judged.upstream;
    throw notAllowed('The operator does not allow the host of this target.');
  }

  return {
    async find(urn, tenant) {
      try {
        return upstreamAt(urn, await directory.resolve(urn, tenant));
      } catch (error) {
        throw error instanceof PlatformError ? problemOf(error) : error;
      }
    },
  };
}

function problemOf(error: PlatformError): Rejection | PlatformError {
  if (error.reason === 'unusable')
    return notAllowed('Upstreams have http or https URLs, without credentials, query and fragment.', error);
  if (error.reason !== 'absent' && error.kind !== 'rejected') return error;
  const detail = 'The directory has no entry for the upstream of this target.';
  return new Rejection('target', 'upstream-unresolved', detail, { cause: error });
}

function notAllowed(detail: string, cause?: unknown): Rejection {
  return new Rejection('host', 'upstream-not-allowed', detail, { cause });
}
