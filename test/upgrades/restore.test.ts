// Restores a backup after a day of work, with the unchanged commands of docs/operations.md. Forms that were deleted
// after the backup are deleted again, ended sessions stay ended, and consumers recognise every repeated event.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { outputOf } from '../support/curl-shell.ts';
import { call } from '../support/platform.ts';
import { type SystemPostgres, startSystemPostgres } from '../support/system-postgres.ts';
import { until } from '../support/until.ts';
import { dumpRedis, restoreRedis } from './dump.ts';
import { configure, createTokens, definition, register, signIn, type Who } from './people.ts';
import type { Product } from './products.ts';
import { startWorld, type World } from './world.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
const section = page.slice(page.indexOf('## Backup and restore'), page.indexOf('## Upgrade'));
const blocks = [...section.matchAll(/^( *)```sh\n([\s\S]*?)^\1```$/gm)].map(([, indent = '', text = '']) =>
  text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
);

let postgres: SystemPostgres;
let world: World;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formgate-restore-'));
  postgres = await startSystemPostgres();
  const createDatabase = async () => ({
    url: await postgres.createDatabase(randomUUID()),
    drop: async () => undefined,
  });
  world = await startWorld({ createDatabase });
});
afterAll(async () => {
  await world?.close();
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the code block of docs/operations.md that contains `text`, in the folder of the backup. */
async function documented(text: string, url = ''): Promise<string> {
  const found = blocks.filter((block) => block.includes(text));
  expect(found, `blocks with ${text}`).toHaveLength(1);
  const env = {
    ...{ PATH: [postgres.programs, process.env.PATH].join(delimiter), HOME: process.env.HOME },
    ...{ FORMS_DATABASE_URL: url, PLATFORM_DATABASE_URL: url },
    ...{ npm_config_prefix: undefined, LOG_LEVEL: 'info' },
  };
  const npm = `npm() { command npm --prefix ${JSON.stringify(root)} "$@"; }\n`;
  return (await outputOf(npm + found[0], { cwd: folder, env })).trim();
}

it('the restored installation has forgotten no deletion, no logout and no event', async () => {
  const platform = await world.start('platform-server', 'new');
  await configure(world);
  let [forms, handler] = await Promise.all([world.start('forms', 'new'), world.start('token-handler', 'new')]);
  await until('the registration', () => /registered at the platform/.test(forms.logText()));
  await register(world, handler.url);
  const tokens = await createTokens(world);
  const ask = (method: string, path: string, as: Who, body?: unknown) =>
    call(`${forms.url}/form/v1/forms${path}`, { method, token: tokens[as], body });
  const create = async (name: string): Promise<string> => {
    const applicant = { channels: [{ channel: 'email', address: `${name}@example.org` }] };
    const { body } = await ask('POST', '', 'intake', { definitionId: definition.id, applicant });
    const { id } = body as { id: string };
    const saved = await ask('PUT', `/${id}/data`, 'intake', { data: { name }, files: {} });
    expect(saved.status).toBe(200);
    return id;
  };
  const submit = async (id: string) => {
    const submitted = await ask('POST', `/${id}`, 'intake', { operation: 'submit' });
    expect([submitted.status, submitted.text]).toEqual([200, expect.any(String)]);
  };

  const kept = await create('kept');
  const erased = await create('erased');
  const interrupted = await create('interrupted');
  const revoked = await signIn(world, handler.url);
  await drained(world);
  // Without the platform server, an event waits in the outbox while the backup is made.
  await platform.kill();
  await submit(interrupted);
  await documented('--file=forms.dump', world.databaseUrls.forms);
  await documented('--file=platform.dump', world.databaseUrls.platform);
  const redis = await dumpRedis(world.redis);

  const platformAgain = await world.start('platform-server', 'new');
  expect((await ask('DELETE', `/${erased}`, 'admin')).status).toBe(204);
  await submit(kept);
  const lost = await create('lost');
  await drained(world);
  const { browser, csrf } = revoked;
  const cookies = browser.cookies(handler.url).map(({ name, value }) => `${name}=${value}`);
  const [{ id: sessionId } = { id: '' }] = JSON.parse(
    (await browser.request(`${handler.url}/token-handler/sessions`)).text,
  );
  const ended = await browser.request(`${handler.url}/token-handler/sessions/${sessionId}`, {
    ...{ method: 'DELETE', headers: { 'X-XSRF-TOKEN': csrf } },
  });
  expect(ended.status).toBe(200);
  await documented('erasures -- export', world.databaseUrls.forms);
  expect(readFileSync(join(folder, 'erasures.jsonl'), 'utf8')).not.toMatch(/example\.org|@/);
  const keysBefore = await keys(world);

  // The next day: restore the backup.
  await Promise.all([forms.stop(), handler.stop()]);
  const url = await postgres.createDatabase(randomUUID());
  await documented('" forms.dump', url);
  const said = await documented('erasures -- apply <', url);
  expect(said).toMatch(/^1 deletions in the list; 1 forms deleted again\.$/m);
  expect(said).toContain('"action":"form.delete"');
  await world.redis.command('FLUSHALL');
  await restoreRedis(world.redis, redis);
  // Without SESSIONS_VALID_FROM, the ended session is valid again.
  const unaware = await world.start('token-handler', 'new');
  expect(await sessionStatus(unaware, cookies)).toBe(200);
  await unaware.stop();
  const validFrom = await documented('date -u');
  [forms, handler] = await Promise.all([
    world.start('forms', 'new', { DATABASE_URL: url }),
    world.start('token-handler', 'new', { SESSIONS_VALID_FROM: validFrom }),
  ]);

  expect((await ask('GET', `/${erased}`, 'admin')).status).toBeGreaterThanOrEqual(404);
  expect((await ask('GET', `/${lost}`, 'admin')).status).toBe(404);
  expect((await ask('GET', `/${interrupted}`, 'admin')).body).toMatchObject({ status: 'Submitted' });
  const restored = new pg.Pool({ connectionString: url, max: 1 });
  await drained({ pools: { ...world.pools, forms: restored } }).finally(() => restored.end());
  // The event service knew the key of every repeated event, so it stored no new keys.
  expect(await keys(world)).toEqual(keysBefore);
  expect(await sessionStatus(handler, cookies)).toBe(401);
  expect((await signIn(world, handler.url)).csrf).not.toBe('');

  // The applicants that were deleted after the backup must be deleted from the platform server's restored database too.
  const platformUrl = await postgres.createDatabase(randomUUID());
  await documented('" platform.dump', platformUrl);
  expect(await applicants(platformUrl)).toEqual(['erased@example.org', 'interrupted@example.org', 'kept@example.org']);
  const saidOfPlatform = await documented('erasures -- apply-platform', platformUrl);
  expect(saidOfPlatform).toMatch(/^1 deletions in the list; 1 applicants deleted again\.$/m);
  expect(await applicants(platformUrl)).toEqual(['interrupted@example.org', 'kept@example.org']);

  // A new event has a new key, so that the event service accepts it.
  await submit(kept);
  await until('the new event', async () => (await keys(world)).length === keysBefore.length + 1);
  await platformAgain.stop();
});

const sessionStatus = async ({ url }: Product, cookies: string[]): Promise<number> =>
  (await call(`${url}/token-handler/sessions`, { headers: { Cookie: cookies.join('; ') } })).status;

async function applicants(connectionString: string): Promise<string[]> {
  const pool = new pg.Pool({ connectionString, max: 1 });
  const sql = 'SELECT address FROM subscriber_channels ORDER BY address';
  const { rows } = await pool.query<{ address: string }>(sql).finally(() => pool.end());
  return rows.map(({ address }) => address);
}

async function keys({ pools }: Pick<World, 'pools'>): Promise<string[]> {
  const { rows } = await pools.platform.query<{ key: string }>('SELECT key FROM event_keys ORDER BY key');
  return rows.map(({ key }) => key);
}

async function drained({ pools }: Pick<World, 'pools'>): Promise<void> {
  const sql = "SELECT count(*)::int AS n FROM outbox WHERE accepted IS NULL AND kind <> 'remove-subscriber'";
  await until('deliveries', async () => (await pools.forms.query<{ n: number }>(sql)).rows[0]?.n === 0);
}
