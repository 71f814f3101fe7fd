// Deletes the data of a tenant with the unchanged commands of docs/operations.md, and searches all databases for rows
// that remain.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommands } from '../support/curl-shell.ts';
import { draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { roleToken } from '../support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../support/sessions.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
const section = page.slice(page.indexOf('## When a tenant leaves'), page.indexOf('## Traces'));
const blocks = [...section.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(([, text = '']) =>
  text.replaceAll(/^ {3}/gm, ''),
);

let world: FormWorld;
let forms: FormReplica;
let site: SessionWorld;
beforeAll(async () => {
  world = await startFormWorld();
  [forms, site] = await Promise.all([
    world.start({ env: { SUBSCRIBER_REMOVAL_DELAY: 'PT0S' } }),
    startSessionWorld({ store: 'redis', platform: world.platform }),
  ]);
});
afterAll(async () => {
  await site?.close();
  await world?.close();
});

const block = (text: string) => blocks.filter((one) => one.includes(text)).join('');

/** Runs the statements of a block that uses psql. */
async function runSql(pool: pg.Pool, variable: string, tenant: string): Promise<pg.QueryResult[]> {
  const sql = /<<'SQL'\n([\s\S]*)\nSQL/.exec(block(variable))?.[1];
  const results = await pool.query((sql ?? '').replaceAll(":'tenant'", pg.escapeLiteral(tenant)));
  return results as unknown as pg.QueryResult[];
}

/** Returns the tables that have rows of the tenant. */
async function tablesWith(pool: pg.Pool, tenants: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ name: string; column: string }>(
    `SELECT table_name AS name, column_name AS column FROM information_schema.columns JOIN pg_tables ON tablename = table_name
     WHERE table_schema = 'public' AND schemaname = 'public' AND (column_name IN ('tenant', 'tenant_id')
       OR (table_name, column_name) = ('tenants', 'id')) ORDER BY 1`,
  );
  expect(rows.length).toBeGreaterThan(3);
  const found: string[] = [];
  for (const { name, column } of rows)
    if ((await pool.query(`SELECT FROM ${name} WHERE ${column} = ANY ($1)`, [tenants])).rowCount) found.push(name);
  return found;
}

it('no data of a tenant that has left remains, except ids that the reconciler deletes', async () => {
  const { access, tenant } = world.platform;
  const held = await draft(forms, 'held@example.org');
  await draft(forms, 'draft@example.org');
  await forms.ask('POST', `/${held}`, { as: 'admin', body: { operation: 'hold', reason: 'a case' } });
  const { browser } = await site.signIn();
  const roles = { 'form-service': ['form-admin'], 'token-handler': ['token-handler-admin'] };
  const CORE_TOKEN = await roleToken(access, roles, { realm: 'core' });
  const run = (text: string, SITE: string) =>
    runCommands(block(text), { env: { PATH: process.env.PATH, CORE_TOKEN, SITE, TENANT: tenant.id } });

  expect(await run('sessions()', site.site)).toMatchObject({ code: 0 });
  expect((await site.sessions(browser)).status).toBe(401);

  expect((await run('forms()', forms.url)).text).toContain('409');
  await forms.ask('POST', `/${held}`, { as: 'admin', body: { operation: 'release' } });
  expect(await run('forms()', forms.url)).toMatchObject({ code: 0 });
  expect((await world.pool.query('SELECT FROM forms')).rowCount).toBe(0);

  expect(await drained(world.pool)).toBe(true);
  const handler = new pg.Pool({ connectionString: site.handler.databaseUrl, max: 1 });
  const id = tenant.id.split('/').at(-1) ?? '';
  const tenants = [tenant.id, id];
  expect(await tablesWith(handler, tenants)).toContain('client_registrations');
  expect(await tablesWith(world.platformPool, tenants)).toEqual(
    expect.arrayContaining(['configuration_revisions', 'configurations', 'event_keys', 'tenants']),
  );
  // A running pod measures the tenant's storage for ten more minutes. In step 4, the operator waits longer than that.
  await forms.close();
  const left = await runSql(world.pool, 'FORMS_DATABASE_URL', tenant.id);
  expect(left.map(({ command, rows }) => [command, rows])).toContainEqual(['SELECT', []]);
  await runSql(handler, 'TOKEN_HANDLER_DATABASE_URL', tenant.id);
  await runSql(world.platformPool, 'PLATFORM_DATABASE_URL', id);
  expect(await tablesWith(world.pool, tenants)).toEqual(['outbox', 'tombstones']);
  expect(await tablesWith(handler, tenants).finally(() => handler.end())).toEqual([]);
  expect(await tablesWith(world.platformPool, tenants)).toEqual([]);
});
