// Tests the upper limit of the number of series of a pod with default settings: 200 targets, many tenants with ten
// paths each (SERIES_TENANTS), and every route with every method.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { routedProcesses } from '../rules/route-tables.ts';
import { startFormWorld } from '../support/form-world.ts';
import { roleToken } from '../support/platform.ts';
import { sizeOf } from '../support/sizes.ts';
import { startTargetWorld, targetUrn } from '../support/targets.ts';
import { countSeries } from './exposed-metrics.ts';

const mostSeries = 3_000;
const tenants = sizeOf('SERIES_TENANTS');
const targets = 200;
const paths = 10 * tenants;
const timeout = 400_000;
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'REPORT'];

const routesOf = (title: string) => routedProcesses.find((one) => one.title === title)?.routes ?? [];
const scrape = async (metricsUrl: string) => (await fetch(`${metricsUrl}/metrics`)).text();

/** Calls `work` for 0 to `count` - 1, 32 at a time. */
async function repeat(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const run = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: 32 }, run));
}

/** Adds tenants, each with a different realm and name. Returns their ids. */
async function addTenants(databaseUrl: string): Promise<string[]> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const { rows } = await pool.query<{ id: string }>(
    `INSERT INTO tenants (id, name, realm)
      SELECT 'b' || lpad(to_hex(n), 23, '0'), 'Tenant ' || n, 'tenant-' || n FROM generate_series(1, $1::int) AS n RETURNING id`,
    [tenants],
  );
  await pool.end();
  return rows.map(({ id }) => id);
}

/** Sends every method to every route. Each request has a new id in its path. */
async function callEveryRoute(url: string, routes: readonly { path: string }[], headers: Record<string, string>) {
  const patterns = [...new Set(routes.map(({ path }) => path))];
  expect(patterns.length).toBeGreaterThan(10);
  await repeat(patterns.length * methods.length, async (index) => {
    const pattern = patterns[Math.floor(index / methods.length)] ?? '';
    const path = pattern.replace(/\*?[:*]\w+/g, () => randomUUID()).replace(/[{}]/g, '');
    const method = methods[index % methods.length] ?? '';
    const body = ['POST', 'PUT', 'PATCH'].includes(method) ? '{}' : null;
    await fetch(url + path, { method, body, headers, redirect: 'manual' }).then((response) => response.text());
  });
}

it('a form service has fewer than 3,000 series', { timeout }, async () => {
  const world = await startFormWorld();
  onTestFinished(() => world.close());
  const ids = await addTenants(world.platform.databaseUrl);
  const forms = await world.start();
  const { access } = world.platform;
  const token = await roleToken(access, { 'form-service': ['form-admin'] }, { realm: 'core' });
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  await callEveryRoute(forms.url, routesOf('Form service'), headers);
  const statuses = new Map<number, number>();
  await repeat(paths, async (index) => {
    const tenantId = encodeURIComponent(access.urns.tenant(ids[index % tenants] ?? ''));
    const known = index % 2 === 0 ? '' : `/${randomUUID()}`;
    const path = index < 2 * tenants ? `/form/v1/forms${known}` : `/unknown/${index}`;
    const { status } = await fetch(`${forms.url}${path}?tenantId=${tenantId}`, { headers });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  });
  // The request for the list of forms of each tenant gets 200. Forms that do not exist and unknown paths get 404.
  expect(statuses).toEqual(
    new Map([
      [200, tenants],
      [404, paths - tenants],
    ]),
  );
  const text = await scrape(forms.metricsUrl);
  expect(text).not.toContain(ids[0]);
  expect(countSeries(text)).toBeLessThan(mostSeries);
});

it('a token handler has fewer than 3,000 series', { timeout }, async () => {
  const given = Array.from({ length: targets }, (_, index) => ({
    id: `target-${index}`,
    upstream: targetUrn('api:v1'),
  }));
  const world = await startTargetWorld({
    // Store the session in Redis, so that the second replica finds it too.
    store: 'redis',
    client: { targets: [{ id: 'api', upstream: targetUrn('api:v1') }, ...given] },
    env: { TARGET_SESSION_LIMIT: '1000000', TARGET_ADDRESS_LIMIT: '1000000' },
  });
  onTestFinished(() => world.close());
  const handler = await world.replica({ TARGET_SESSION_LIMIT: '1000000', TARGET_ADDRESS_LIMIT: '1000000' });
  onTestFinished(() => handler.close());
  await addTenants(world.handler.platform.databaseUrl);
  const { cookie, csrf } = world.person;
  const headers = { Cookie: cookie, 'X-XSRF-TOKEN': csrf, 'Content-Type': 'application/json' };
  await repeat(tenants, async (index) => {
    const query = new URLSearchParams({
      tenant: `Tenant ${index + 1}`,
      callbackUrl: `${world.site}/callback/${index}`,
    });
    await fetch(`${handler.url}/token-handler/v1/clients/web/auth?${query}`, { redirect: 'manual' });
  });
  const statuses = new Map<number, number>();
  await repeat(paths, async (index) => {
    const target = `/token-handler/v1/targets/target-${index % targets}/path/${index}`;
    const { status } = await world.send({ target, method: methods[index % 6] ?? '', url: handler.url });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  });
  expect(statuses.get(200)).toBeGreaterThan(paths * 0.95);
  await callEveryRoute(handler.url, routesOf('Token handler'), headers);
  const text = await scrape(handler.metricsUrl);
  expect(text).not.toMatch(/target-\d|Tenant \d/);
  expect(countSeries(text)).toBeLessThan(mostSeries);
});
