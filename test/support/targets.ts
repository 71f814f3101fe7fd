// A token handler whose client has targets, with a recording upstream and a person who has signed in. Requests are sent
// byte for byte as a test writes them.

import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import { findFreePort } from '../../dev/ports.ts';
import { createDirectoryStore } from '../../src/platform-server/directory/store.ts';
import { createMetrics } from '../../src/service/operations/metrics.ts';
import type { RunningService } from '../../src/service/operations/serve.ts';
import { createPool } from '../../src/service/postgres/postgres.ts';
import { captureLog } from './captured-log.ts';
import { readAgain } from './read-again.ts';
import { cookieName, type SessionWorld, type SessionWorldOptions, startSessionWorld } from './sessions.ts';
import { startUpstream, type Upstream } from './upstream.ts';

export interface TargetWorld extends SessionWorld {
  upstream: Upstream;
  person: Person;
  /** Signs in another person, or the same person again. `start` is the address that starts the sign-in. */
  enter(email?: string, start?: string): Promise<Person>;
  /** Saves an entry of the directory in the tenant's namespace. Resolves when the token handler has read the entry. */
  direct(service: string, url: string): Promise<void>;
  /** Starts another replica and waits until it is ready. */
  replica(env?: Record<string, string>): Promise<RunningService>;
  /** Sends a request, by default to the target `api` as `person`. */
  send(options?: Sending): Promise<Sent>;
  /** Like `send`, for a test that writes the body and reads the response itself. */
  start(options?: Sending): Started;
}

export interface Person {
  /** The Cookie header of the browser. */
  cookie: string;
  csrf: string;
  handle: string;
}

export interface Sending {
  method?: string;
  /** Path after the id of the target `api`, sent unchanged. */
  path?: string;
  /** The whole request target of the request line. It replaces the address that is built from `api` and `path`. */
  target?: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Buffer;
  /** The person whose session the request has; null for a request without a session. */
  as?: Person | null;
  /** True to omit the CSRF header. */
  unprotected?: boolean;
  /** URL of another replica to which the request is sent. */
  url?: string;
}

export interface Started {
  request: ClientRequest;
  answer: Promise<IncomingMessage>;
}

export interface Sent {
  status: number;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  text: string;
  trailers: NodeJS.Dict<string>;
  /** Last segment of the problem's type. */
  problem: string | undefined;
}

const namespace = 'demo';
export const targetUrn = (service: string) => `urn:example:${namespace}:${service}`;
/** The upstream path of the target `api`. */
export const basePath = '/base/v1';

export async function startTargetWorld(options: SessionWorldOptions = {}): Promise<TargetWorld> {
  const upstream = await startUpstream();
  const targets = ['api:v1', 'root', 'dead', 'nowhere', 'other'].map((service) => ({
    id: service.split(':', 1)[0],
    upstream: targetUrn(service),
  }));
  targets.push({ id: 'My target_1', upstream: targetUrn('api:v1') });
  // A target that leads to the platform server itself, on 127.0.0.1.
  targets.push({ id: 'platform', upstream: 'urn:example:platform:directory-service:v2' });
  const sessions = await startSessionWorld({ ...options, client: { targets, ...options.client } });
  const directory = openDirectory(sessions.handler.platform.databaseUrl);
  const direct = async (service: string, url: string) => {
    await directory.save({ namespace, service, url });
    const ask = () => send(world, { target: `/token-handler/v1/targets/${service.split(':', 1)[0]}/warm-up` });
    // The first of the two calls may have begun before the change.
    await readAgain({ metricsUrl: sessions.handler.metricsUrl, dependency: 'directory', calls: 2, ask });
    upstream.forget();
  };
  const enter = async (email?: string, start?: string): Promise<Person> => {
    const how = { ...(email !== undefined && { email }), ...(start !== undefined && { start }) };
    const { browser, csrf, handle } = await sessions.signIn(undefined, how);
    const cookies = [cookieName, 'XSRF-TOKEN'].map((name) => `${name}=${browser.cookie(sessions.site, name)}`);
    return { cookie: cookies.join('; '), csrf, handle };
  };
  const world: TargetWorld = {
    ...sessions,
    upstream,
    person: await enter(),
    enter,
    direct,
    async replica(env = {}) {
      const running = await sessions.handler.startReplica({ env });
      for (let waited = 0; waited < 60_000; waited += 50) {
        if ((await fetch(`${running.metricsUrl}/readyz`)).ok) return running;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error('the replica is not ready');
    },
    send: (sending = {}) => send(world, sending),
    start: (sending = {}) => start(world, sending),
    async close() {
      await Promise.all([sessions.close(), upstream.close(), directory.close()]);
    },
  };
  await direct('api:v1', `${upstream.url}${basePath}`);
  await direct('root', `${upstream.url}/`);
  await direct('dead', `http://127.0.0.1:${await findFreePort()}/x`);
  return world;
}

function openDirectory(databaseUrl: string) {
  const pool = createPool({ url: databaseUrl, size: 1, log: captureLog().log, metrics: createMetrics() });
  return { save: createDirectoryStore(pool).save, close: () => pool.end() };
}

/** Returns the headers that a person's browser would send: the session's cookie and the CSRF header. */
function headersOf(person: Person | null, unprotected = false): OutgoingHttpHeaders {
  if (!person) return {};
  return { Cookie: person.cookie, ...(!unprotected && { 'X-XSRF-TOKEN': person.csrf }) };
}

function start(world: TargetWorld, sending: Sending): Started {
  const { method = 'GET', path = '/x', headers, as = world.person, unprotected, url = world.site } = sending;
  const target = sending.target ?? `/token-handler/v1/targets/api${path}`;
  const { hostname, port } = new URL(url);
  const own = headersOf(as, unprotected);
  const outgoing = request({ hostname, port, method, path: target, headers: { ...own, ...headers } });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.on('error', reject);
  });
  return { request: outgoing, answer };
}

async function send(world: TargetWorld, sending: Sending): Promise<Sent> {
  const { request: outgoing, answer } = start(world, sending);
  outgoing.end(sending.body);
  const incoming = await answer;
  const text = (await buffer(incoming)).toString('utf8');
  const { statusCode: status = 0, headers, rawHeaders, trailers } = incoming;
  return { status, headers, rawHeaders, text, trailers, problem: problemOf(text) };
}

function problemOf(text: string): string | undefined {
  return /"type":"urn:formgate:problem:([\w-]+)"/.exec(text)?.[1];
}
