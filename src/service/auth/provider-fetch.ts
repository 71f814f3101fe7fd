// Sends requests to identity providers, each over a new connection. A kept connection may be dead: the server may be
// closing it, or the network may have dropped it silently. The outcome of the request would then be unknown, and an
// authorization code must not be presented twice (RFC 6749 section 4.1.2). The requests are rare, because the responses
// for a realm are cached, except those for the sign-in of one person.
import { Agent, fetch, type RequestInit } from 'undici';

/** Largest response in bytes. Keycloak's responses have at most 10 KiB. */
const longestResponse = 1_048_576;

/** Returns an agent that closes each connection after its response, because of `pipelining: 0`. */
export const createProviderAgent = () =>
  new Agent({ pipelining: 0, connect: { timeout: 5_000 }, maxResponseSize: longestResponse });

const agent = createProviderAgent();

export type ProviderRequest = Pick<RequestInit, 'method' | 'headers' | 'body' | 'signal'>;

/** Like the global `fetch`, but never follows a redirect, which would send secrets to another address. */
export const fetchFromProvider = (target: string | URL, request: ProviderRequest) =>
  fetch(target, { ...request, redirect: 'manual', dispatcher: agent });
