// Sends requests to identity providers, each over a new connection. An open connection may be dead: the server may be
// closing it, or the network may have dropped it silently. The outcome of a request over a dead connection is unknown.
// Such a request must not be repeated, because an authorization code must not be presented twice (RFC 6749 section
// 4.1.2). New connections cost little, because requests are rare: except during a sign-in, the responses are cached for
// the whole realm. Lookups of hosts are limited, so that a provider whose name servers do not respond does not delay
// the others.
import { Agent, type Dispatcher, fetch, type RequestInit } from 'undici';
import { HostLookups, lookupShares } from '../http/host-lookups.ts';
import { uncompressedResponses } from '../http/uncompressed-responses.ts';

/** Maximum size of a response in bytes. Keycloak's responses have at most 10 KiB. */
export const longestResponse = 1_048_576;

/** The lookups of all agents of this process. */
const sharedLookups = new HostLookups({
  slots: { total: lookupShares.providers, perTenant: Math.max(1, lookupShares.providers - 1) },
});
/**
 * Hosts of identity providers are no tenants. They form two groups in place of tenants, each of which leaves a slot for
 * the other, so that hosts whose lookups keep failing do not delay the others. Each host has one lookup at a time.
 */
const groupsIn = (lookups: HostLookups) => (host: string) => (lookups.hasFailed(host) ? 'failing' : 'working');

/** Looks up the host of an identity provider, within the limits of all requests to identity providers. */
export const lookupProvider = sharedLookups.lookupFor(groupsIn(sharedLookups));

export function createProviderAgent(lookups = sharedLookups): Dispatcher {
  const connect = { timeout: 5_000, lookup: lookups.lookupFor(groupsIn(lookups)) };
  // `pipelining: 0` makes the agent close each connection after its response.
  return new Agent({ pipelining: 0, connect, maxResponseSize: longestResponse }).compose(uncompressedResponses);
}

const agent = createProviderAgent();

export type ProviderRequest = Pick<RequestInit, 'method' | 'headers' | 'body' | 'signal'>;

/** Like the global `fetch`, but never follows a redirect, because a redirect could send secrets to another address. */
export const fetchFromProvider = (target: string | URL, request: ProviderRequest) =>
  fetch(target, { ...request, redirect: 'manual', dispatcher: agent });
