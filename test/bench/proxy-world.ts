// The environment of the proxy bench: a complete Formgate as the platform, a Redis, an upstream behind a target, and
// signed-in people. The measured token handler is a separate process.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serviceSecretName } from '../../dev/processes/environments.ts';
import { openSecrets } from '../../dev/secrets.ts';
import { createFormgate } from '../../dev/start.ts';
import { startTestRedis } from '../support/redis.ts';
import { createSiteBrowser } from '../support/site-browser.ts';
import {
  inheritedEnvironment,
  startTokenHandlerProcess,
  type TokenHandlerProcess,
} from '../support/token-handler-process.ts';

export interface ProxyWorld {
  /** URL of the token handler. */
  url: string;
  handler: TokenHandlerProcess;
  /** The Cookie headers of sessions. */
  cookies: string[];
  /** Starts another token handler with the same sessions: with additional settings, or from another checkout. */
  startAnother(env: Record<string, string>, checkout?: string): Promise<TokenHandlerProcess>;
  /** The environment of each service, without its ports. A bench uses it to start more processes of the service. */
  environments: Record<'forms' | 'token-handler', Record<string, string>>;
  close(): Promise<void>;
}

export interface ProxyWorldOptions {
  upstreamUrl: string;
  sessions: number;
}

/** The id of the target that leads to the bench's upstream. */
export const target = 'upstream';
const clientId = 'bench';
const urnPrefix = 'urn:example';
/** Node flags from BENCH_NODE_FLAGS, added to the flags of production to measure their effect. */
export const nodeFlags = process.env.BENCH_NODE_FLAGS?.split(' ') ?? [];

export async function startProxyWorld({ upstreamUrl, sessions }: ProxyWorldOptions): Promise<ProxyWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'formgate-bench-'));
  const report = {
    done: (part: string) => console.error(`  ready  ${part}`),
    warn: (text: string) => console.error(text),
  };
  const formgate = createFormgate({ port: 0, directory, fresh: false, help: false, urnPrefix }, report);
  const { publicUrl, forms } = await formgate.start();
  const redis = await startTestRedis();
  const secrets = await openSecrets(join(directory, 'secrets.json'));
  const databaseUrl = new URL(forms.databaseUrl);
  databaseUrl.pathname = '/token_handler';
  const common = {
    HOST: '127.0.0.1',
    ACCESS_SERVICE_URL: `${publicUrl}/auth`,
    DIRECTORY_URL: `${publicUrl}/directory/v2`,
  };
  const secretOf = (service: string) => secrets.get(serviceSecretName(`${urnPrefix}:platform:${service}`));
  const env = {
    ...common,
    DATABASE_URL: databaseUrl.href,
    CLIENT_SECRET: await secretOf('token-handler'),
    KEY_RING: `bench:${Buffer.alloc(32, 7).toString('base64')}`,
    REDIS_URL: redis.url,
    [`DIR_DEMO_${target.toUpperCase()}`]: upstreamUrl,
    TARGET_SESSION_LIMIT: '1000000000',
    TARGET_ADDRESS_LIMIT: '1000000000',
    SIGN_IN_LIMIT: '1000000',
    // All sessions belong to one person, who must be able to use all connections.
    UPSTREAM_PERSON_SHARE: '100',
    UPSTREAM_TENANT_SHARE: '100',
    STREAMS: '20000',
    SESSION_STREAMS: '10000',
  };
  // The log goes to a file, as in a container.
  const logFile = join(directory, 'bench.log');
  const handler = await startTokenHandlerProcess({ env, logFile, nodeFlags });
  const { url } = handler;
  await registerClient(publicUrl, url);
  const cookies: string[] = [];
  for (let index = 0; index < sessions; index += 1) cookies.push(await signIn(url));
  return {
    url,
    handler,
    cookies,
    startAnother: (more, checkout) =>
      startTokenHandlerProcess({ env: { ...env, ...more }, logFile, nodeFlags, ...(checkout && { checkout }) }),
    environments: {
      forms: {
        ...{ ...common, ...inheritedEnvironment(), DATABASE_URL: forms.databaseUrl },
        CLIENT_SECRET: await secretOf('form-service'),
        CODE_KEY: await secrets.get('form-service-code-key'),
      },
      'token-handler': { ...env, ...inheritedEnvironment() },
    },
    async close() {
      await handler.stop();
      await formgate.stop();
      await redis.close();
    },
  };
}

async function registerClient(publicUrl: string, url: string): Promise<void> {
  const form = { grant_type: 'client_credentials', client_id: 'demo-admin', client_secret: 'demo-admin-secret' };
  const tokenUrl = `${publicUrl}/auth/realms/demo/protocol/openid-connect/token`;
  const response = await fetch(tokenUrl, { method: 'POST', body: new URLSearchParams(form) });
  const { access_token: token } = (await response.json()) as { access_token: string };
  const send = async (address: string, method: string, body: object) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const sent = await fetch(address, { method, headers, body: JSON.stringify(body) });
    if (!sent.ok) throw new Error(`${address} returned ${sent.status}: ${await sent.text()}`);
  };
  const client = {
    redirectUris: [`${url}/token-handler/clients/${clientId}/callback`],
    targets: [{ id: target, upstream: `${urnPrefix}:demo:${target}` }],
  };
  const configuration = `${publicUrl}/configuration/v2/configuration/platform/token-handler`;
  await send(configuration, 'PATCH', { operation: 'UPDATE', update: { clients: { [clientId]: client } } });
  await send(`${url}/token-handler/v1/clients/${clientId}`, 'POST', { registrationToken: 'demo-registration-token' });
}

async function signIn(url: string): Promise<string> {
  const browser = createSiteBrowser();
  const isCallback = (address: URL) => address.pathname.endsWith('/callback');
  const client = `${url}/token-handler/clients/${clientId}`;
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${client}/callback` });
  const page = await browser.follow(await browser.request(`${client}/auth?${query}`), isCallback);
  const sent = await browser.submit(page, { username: 'alice@example.com', password: 'alice' });
  const { location } = await browser.follow(sent, isCallback);
  if (!location) throw new Error('the identity provider did not redirect to the callback');
  await browser.request(location);
  const name = 'formgate_session';
  return `${name}=${browser.cookie(url, name)}; XSRF-TOKEN=${browser.cookie(url, 'XSRF-TOKEN')}`;
}
