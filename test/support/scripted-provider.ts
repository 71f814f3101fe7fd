// An identity provider on loopback whose responses a test scripts, for faults and refusals that no real provider
// causes. Without a script, it responds only to discovery.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createTenantIssuers } from '../../src/service/auth/tenant-issuers.ts';
import type { Metrics } from '../../src/service/operations/metrics.ts';
import { createProviderAddresses, type ProviderAddresses } from '../../src/token-handler/provider-addresses.ts';
import { closeServer, listenOnLoopback } from './loopback-server.ts';

export interface ProviderCall {
  /** Method and path of the call, such as `POST /auth/realms/demo/token`. */
  line: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** `hang up` closes the connection, `silence` never responds. A body that is not a string is sent as JSON. */
export type ProviderReply =
  | 'hang up'
  | 'silence'
  | { status: number; body?: unknown; headers?: Record<string, string> };

export interface ScriptedProvider {
  /** URL of the provider: `http://127.0.0.1:<port>/auth`. */
  url: string;
  calls: ProviderCall[];
  /** Members of the discovery document that replace the usual ones. */
  metadata: Record<string, unknown>;
  /**
   * Replies, keyed by `line` of the call. A list has one reply for each call; the last reply also answers all further
   * calls.
   */
  script: Record<string, ProviderReply | ProviderReply[]>;
  /** The provider operations that the traces name, in order. */
  operations: string[];
  /**
   * Returns the addresses of this provider. An issuer other than an empty string is mapped to the tenant of the realm
   * `demo`.
   */
  addresses(issuer: string): ProviderAddresses;
  /** Returns the `line` of each call, in order. */
  lines(): string[];
  /** Forgets calls, operations, metadata and script. */
  reset(): void;
  close(): Promise<void>;
}

export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const call = { line: `${request.method} ${request.url}`, headers: request.headers, body };
    provider.calls.push(call);
    reply(response, replyTo(call.line));
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}/auth`;

  function replyTo(line: string): ProviderReply {
    const scripted = provider.script[line];
    if (Array.isArray(scripted)) return (scripted.length > 1 ? scripted.shift() : scripted[0]) ?? { status: 404 };
    const realm = /^GET (\/auth\/realms\/[^/]+)\/\.well-known\/openid-configuration$/.exec(line)?.[1];
    if (scripted || realm === undefined) return scripted ?? { status: 404 };
    const issuer = new URL(realm, url).href;
    const endpoints = { registration_endpoint: `${issuer}/clients`, token_endpoint: `${issuer}/token` };
    return { status: 200, body: { issuer, ...endpoints, ...provider.metadata } };
  }

  const provider: ScriptedProvider = {
    ...{ url, calls: [], metadata: {}, script: {}, operations: [] },
    addresses(issuer) {
      const tenantIssuers = createTenantIssuers(issuer === '' ? [] : [['demo', issuer]]);
      const addresses = createProviderAddresses({ accessUrl: url, tenantIssuers });
      return {
        ...addresses,
        fetch(of, to, init, operation) {
          provider.operations.push(operation);
          return addresses.fetch(of, to, init, operation);
        },
      };
    },
    lines: () => provider.calls.map(({ line }) => line),
    reset: () => void Object.assign(provider, { calls: [], metadata: {}, script: {}, operations: [] }),
    close: () => closeServer(server),
  };
  return provider;
}

function reply(response: ServerResponse, given: ProviderReply): void {
  if (given === 'silence') return;
  if (given === 'hang up') return void response.destroy();
  const { status, body, headers } = given;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Returns the samples of the metric that counts the failures of dependencies. */
export async function failuresOf(metrics: Pick<Metrics, 'dependencyFailures'>) {
  const { values } = await metrics.dependencyFailures.get();
  return values.map(({ labels, value }) => ({ ...labels, value }));
}
