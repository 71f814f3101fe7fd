// Maps tenants to issuers outside the platform's identity provider (TENANT_ISSUERS). Only the operator sets this
// mapping; no request can change it. Each tenant has exactly one issuer, so that no other issuer can issue tokens for
// the people of the tenant.

import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { hasQueryOrFragment, localHosts } from '../url-text.ts';
import { fetchFromProvider } from './provider-fetch.ts';

export interface TenantIssuers {
  /** Returns the issuer of the tenant with this realm, exactly as the tokens of this issuer state it. */
  issuerOf(realm: string): string | undefined;
  /** Returns the realm of the tenant with this issuer, which must match exactly (OpenID Connect Core 3.1.3.7). */
  realmOf(issuer: string): string | undefined;
  issuers: readonly string[];
}

export function createTenantIssuers(pairs: readonly (readonly [realm: string, issuer: string])[]): TenantIssuers {
  const byRealm = new Map(pairs);
  const byIssuer = new Map(pairs.map(([realm, issuer]) => [issuer, realm]));
  return {
    issuerOf: (realm) => byRealm.get(realm),
    realmOf: (issuer) => byIssuer.get(issuer),
    issuers: [...byIssuer.keys()],
  };
}

export const noTenantIssuers = createTenantIssuers([]);

/**
 * Returns the realm to which the issuer is mapped. For an unmapped issuer, returns the text after
 * `<accessPublicUrl>/realms/`. Returns undefined if the issuer has another base URL, or if that realm is mapped to a
 * different issuer.
 */
export function realmOfIssuer(issuer: string, accessPublicUrl: string, mapped: TenantIssuers): string | undefined {
  const own = mapped.realmOf(issuer);
  if (own !== undefined) return own;
  const base = `${accessPublicUrl}/realms/`;
  const realm = issuer.startsWith(base) ? issuer.slice(base.length) : undefined;
  return realm === undefined || mapped.issuerOf(realm) !== undefined ? undefined : realm;
}

// The accepted realm names. Their characters have no special meaning in a URL, and no name is a dot segment.
export const realmPattern = /^(?!\.+$)[\w.-]{1,50}$/;

/**
 * Parses `realm=issuer,realm=issuer,…`. Reports each problem with the position of the item, and never quotes an issuer,
 * because an issuer may contain credentials.
 */
export function tenantIssuersSetting() {
  return z
    .string()
    .default('')
    .transform((text, context) => {
      const items = text.split(',').filter((item) => item.trim() !== '');
      const pairs = items.map((item): [string, string] => {
        const [realm = '', ...rest] = item.trim().split('=');
        return [realm.trim(), rest.join('=').trim()];
      });
      for (const [index, [realm, issuer]] of pairs.entries()) {
        const before = pairs.slice(0, index);
        const problem = pairProblem(realm, issuer, before);
        if (problem !== undefined) context.addIssue(`item ${index + 1}: ${problem}`);
      }
      return createTenantIssuers(pairs);
    });
}

function pairProblem(realm: string, issuer: string, before: readonly [string, string][]): string | undefined {
  if (!realmPattern.test(realm) || realm === 'core') return 'must be the realm of a tenant, =, and an issuer';
  if (before.some(([other]) => other === realm)) return `must not name the realm ${realm} again`;
  if (before.some(([, other]) => other === issuer)) return `must not map the issuer of another realm to ${realm}`;
  return issuerProblem(issuer);
}

function issuerProblem(issuer: string): string | undefined {
  if (!URL.canParse(issuer)) return 'must have an issuer that is an https URL';
  const { href, protocol, hostname, username, password } = new URL(issuer);
  const isLocal = protocol === 'http:' && localHosts.has(hostname);
  if (protocol !== 'https:' && !isLocal) return 'must have an issuer that is an https URL';
  // OpenID Connect Discovery 1.0, section 3: an issuer has no query and no fragment.
  if (username || password || hasQueryOrFragment(issuer))
    return 'must have an issuer without credentials, query and fragment';
  // Issuers are compared as text. An issuer in a different spelling, or a template such as {tenantid}, would match no
  // token.
  return href === issuer || href === `${issuer}/` ? undefined : 'must have the issuer exactly as its tokens state it';
}

/** Timeout of a request for a discovery document, in milliseconds. */
const timeout = 10_000;
/** Milliseconds for which the `jwks_uri` of a discovery document is used. */
const lifetime = 3_600_000;
const discoverySchema = z.looseObject({ issuer: z.string(), jwks_uri: z.string() });

/**
 * Returns a function that finds the URL of a realm's keys. The function uses discovery for a mapped issuer, and
 * Keycloak's path for all other realms.
 */
export function createKeysUrl(accessUrl: string, mapped: TenantIssuers = noTenantIssuers) {
  const found = new LRUCache<string, string>({ max: 5_000, ttl: lifetime });
  return async (realm: string): Promise<string> => {
    const issuer = mapped.issuerOf(realm);
    if (issuer === undefined) return `${accessUrl}/realms/${encodeURIComponent(realm)}/protocol/openid-connect/certs`;
    const known = found.get(issuer);
    if (known !== undefined) return known;
    const url = await discoverKeys(issuer);
    found.set(issuer, url);
    return url;
  };
}

/**
 * Returns the URL of the issuer's key set from its discovery document. Throws if the document names a different issuer
 * (OpenID Connect Discovery 1.0, section 4.3), or if the URL of the key set has a different origin than the issuer.
 */
async function discoverKeys(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetchFromProvider(url, { signal: AbortSignal.timeout(timeout) });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the identity provider responded with ${response.status}`);
  }
  const document = discoverySchema.parse(await response.json());
  if (document.issuer !== issuer) throw new Error("the identity provider's discovery document names another issuer");
  if (new URL(document.jwks_uri).origin !== new URL(issuer).origin)
    throw new Error('the keys of the identity provider have another origin than its issuer');
  return document.jwks_uri;
}
