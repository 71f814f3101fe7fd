// What `npm start` comes with: the tenant, the directory and a form. Written only where nothing is, so that nobody's
// changes are lost at a restart. The register of countries is in countries.ts.
import { setTimeout as delay } from 'node:timers/promises';
import type { Urns } from '../../service/urn.ts';
import { businessLicence, businessLicenceId } from './business-licence.ts';

const demoTenantId = '65f0c2a9e4b0a1d2c3f4a5b6';

/** Platform services by name, with the API of each and its path. */
const platformApis = {
  'configuration-service': ['v2', '/configuration/v2'],
  'tenant-service': ['v2', '/api/tenant/v2'],
  'event-service': ['v1', '/event/v1'],
  'notification-service': ['v1', '/subscription/v1'],
} as const;

/** The seed file of the platform server. `targets` are the addresses of the two processes. */
export function platformSeed(targets: { platformServer: string; forms: string }): object {
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
    ],
  };
}

/** Writes the form over HTTP as the client demo-admin does. Throws when an answer is not a success. */
export async function writeDemoData(options: { url: string; token: string; urns: Urns }): Promise<void> {
  const { urns } = options;
  await writeMember(options, 'form-service', businessLicenceId, businessLicence(urns));
}

/**
 * Waits until the form service has registered its notification type, which it does in the background: before that
 * nobody can be sent a code. Throws after 30 s.
 */
export async function waitForNotices(connection: Connection): Promise<void> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await delay(50)) {
    const types = await call(connection, 'GET', 'platform/notification-service/latest?core=true');
    if (types && typeof types === 'object' && 'form-status-updates' in types) return;
  }
  throw new Error('The form service has not registered its notification type within 30 s.');
}

type Connection = { url: string; token: string };

/** Sets one member of the tenant's `platform:<name>`, unless it has it. */
async function writeMember(connection: Connection, name: string, member: string, value: object): Promise<void> {
  const present = await call(connection, 'GET', `platform/${name}/latest`);
  if (present && typeof present === 'object' && member in present) return;
  await call(connection, 'PATCH', `platform/${name}`, { operation: 'UPDATE', update: { [member]: value } });
}

async function call({ url, token }: Connection, method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${url}/configuration/v2/configuration/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok)
    throw new Error(`The configuration service answered ${response.status} to ${method} ${path}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
