// The demo data of `npm start`: the tenant, the directory, a form definition and a client of the token handler.
// Existing data is not overwritten, so that a restart loses no changes. The register of countries is in countries.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Urns } from '../../src/service/urn.ts';
import type { Targets } from '../gateway.ts';
import { businessLicence, businessLicenceId } from './business-licence.ts';
import { sendJson } from './send-json.ts';

const demoTenantId = '65f0c2a9e4b0a1d2c3f4a5b6';

/** Platform services, keyed by name, each with the version and the path of its API. */
const platformApis = {
  'configuration-service': ['v2', '/configuration/v2'],
  'tenant-service': ['v2', '/api/tenant/v2'],
  'event-service': ['v1', '/event/v1'],
  'notification-service': ['v1', '/subscription/v1'],
} as const;

/** Returns the content of the platform server's seed file. `targets` are the addresses of the child processes. */
export function platformSeed(targets: Targets): object {
  const entry = (service: string, url: string) => ({ namespace: 'platform', service, url });
  const platform = Object.entries(platformApis).flatMap(([service, [version, path]]) => [
    entry(service, targets.platformServer),
    entry(`${service}:${version}`, `${targets.platformServer}${path}`),
  ]);
  return {
    tenants: [{ id: demoTenantId, name: 'Demo', realm: 'demo', adminEmail: 'admin@example.com' }],
    directory: [
      ...platform,
      entry('form-service', targets.forms),
      entry('form-service:v1', `${targets.forms}/form/v1`),
      entry('token-handler', targets.tokenHandler),
      entry('token-handler:v1', `${targets.tokenHandler}/token-handler/v1`),
    ],
  };
}

/**
 * Writes the demo's form definition and the demo's client of the token handler. Calls the configuration service with an
 * access token of the user demo-admin. `publicUrl` is the gateway's address, for links in mails and for redirect URIs.
 * Throws if a request fails.
 */
export async function writeDemoData(options: Connection & { urns: Urns; publicUrl: string }): Promise<void> {
  const { urns, publicUrl } = options;
  await writeMember(options, 'form-service', businessLicenceId, businessLicence(urns, publicUrl));
  await writeDemoConsole(options, publicUrl);
}

/**
 * Waits until the form service has registered its notification type `form-status-updates`, because no code can be sent
 * before that. The form service registers the type in the background after its start. Throws after 30 s.
 */
export async function waitForNotices(connection: Connection): Promise<void> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await sleep(50)) {
    const types = await call(connection, 'GET', 'platform/notification-service/latest?core=true');
    if (types && typeof types === 'object' && 'form-status-updates' in types) return;
  }
  throw new Error('The form service has not registered its notification type within 30 s.');
}

export const demoConsoleId = 'demo-console';

/**
 * Creates the client of the demo's frontend. If the client exists, adds the current redirect URI, because the port may
 * have changed since the last start.
 */
async function writeDemoConsole(connection: Connection, publicUrl: string): Promise<void> {
  const redirectUri = `${publicUrl}/token-handler/clients/${demoConsoleId}/callback`;
  const latest = await call(connection, 'GET', 'platform/token-handler/latest');
  const clients = memberOf(latest, 'clients');
  const present = memberOf(clients, demoConsoleId);
  const uris = memberOf(present, 'redirectUris');
  const redirectUris = Array.isArray(uris) ? uris : [];
  if (redirectUris.includes(redirectUri)) return;
  const client = {
    id: demoConsoleId,
    name: 'Demo console',
    description: 'The frontend of npm run demo, on this machine.',
    targets: ['form-service', 'configuration-service'],
    ...(typeof present === 'object' && present),
    redirectUris: [...redirectUris, redirectUri],
  };
  const update = { clients: { [demoConsoleId]: client } };
  await call(connection, 'PATCH', 'platform/token-handler', { operation: 'UPDATE', update });
}

function memberOf(value: unknown, name: string): unknown {
  return value && typeof value === 'object' ? new Map<string, unknown>(Object.entries(value)).get(name) : undefined;
}

type Connection = { url: string; token: string };

/** Sets one member of the tenant's configuration `platform:<name>`, unless the member exists. */
async function writeMember(connection: Connection, name: string, member: string, value: object): Promise<void> {
  const present = await call(connection, 'GET', `platform/${name}/latest`);
  if (present && typeof present === 'object' && member in present) return;
  await call(connection, 'PATCH', `platform/${name}`, { operation: 'UPDATE', update: { [member]: value } });
}

async function call({ url, token }: Connection, method: string, path: string, body?: object): Promise<unknown> {
  const address = `${url}/configuration/v2/configuration/${path}`;
  const { status, text } = await sendJson({ method, url: address, token, body });
  if (status >= 300) throw new Error(`${method} ${path} at the configuration service failed with ${status}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
