// Both services with Postgres behind a pool that gives each transaction another server connection, as PgBouncer does in
// transaction pooling mode. No statement may depend on the state of a Postgres session.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { codeFor, draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { anonymous, permit } from '../support/forms.ts';
import { call, roleToken } from '../support/platform.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTransactionPool, type TransactionPool } from '../support/transaction-pool.ts';

let pools: { platform: TransactionPool; forms: TransactionPool };
let database: TestDatabase;
let world: FormWorld;
let forms: FormReplica;
let direct: pg.Pool;
const lives = 3;

beforeAll(async () => {
  const upstream = inject('postgresUrl');
  const [platform, ours] = await Promise.all([startTransactionPool(upstream), startTransactionPool(upstream)]);
  pools = { platform, forms: ours };
  // The database is empty, so the service migrates it through the pool.
  database = await createTestDatabase();
  world = await startFormWorld({ databaseVia: platform.host });
  const url = new URL(database.url);
  url.host = ours.host;
  forms = await world.start({ env: { DATABASE_URL: url.href } });
  direct = new pg.Pool({ connectionString: database.url, max: 2 });
  // Once a form has its subscriber, the registrations that the service makes in the background are complete.
  await draft(forms);
  await drained(direct);
});
afterAll(async () => {
  await direct.end();
  await world.close();
  await Promise.all([pools.platform.close(), pools.forms.close()]);
  await database.drop();
});

/** Matches statements that work only if the next statement is sent to the same session. */
const sessionState =
  /^\s*(?:SET (?!LOCAL|TRANSACTION)|PREPARE|DECLARE .* WITH HOLD|SELECT pg_(?:try_)?advisory_(?:un)?lock|CREATE TEMP)/i;

async function life(address: string): Promise<void> {
  const headers = { 'idempotency-key': `pooled ${address}` };
  const applicant = anonymous(address);
  const created = await forms.ask('POST', '', { as: 'intake', body: { definitionId: permit.id, applicant }, headers });
  expect(created.status).toBe(201);
  const { id } = created.body as { id: string };
  const sent = await forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'send-code' } });
  expect(sent.status, `${sent.text} ${problemsOf(forms)}`).toBe(202);
  const code = await codeFor(world.platform, address);
  const read = (given: string) => forms.ask('GET', `/${id}/data`, { as: 'intake', headers: { 'x-form-code': given } });
  expect((await read('WRONG1')).status).toBe(403);
  expect((await read(code)).status).toBe(200);
  expect((await read(code)).status).toBe(200);
  const body = { data: { name: 'Ana' }, files: {} };
  expect((await forms.ask('PUT', `/${id}/data`, { as: 'intake', body })).status).toBe(200);
  const submit = () => forms.ask('POST', `/${id}`, { as: 'intake', body: { operation: 'submit' }, headers });
  expect((await submit()).status).toBe(200);
  expect((await submit()).status).toBe(200);
  expect((await forms.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
}

/** Returns the last failures that the service logged, which show why it rejected a request. */
const problemsOf = ({ logText }: FormReplica) =>
  logText()
    .split('\n')
    .filter((line) => /"level":"(?:warn|error)"/.test(line))
    .slice(-3)
    .join(' ');

async function outboxCounts(): Promise<Map<string, number>> {
  const { rows } = await direct.query<{ kind: string; n: number }>(
    'SELECT kind, count(*)::int AS n FROM outbox GROUP BY kind',
  );
  return new Map(rows.map(({ kind, n }) => [kind, n]));
}

it('behind a pool of transactions, forms go through their whole life, and their events and mails arrive', async () => {
  await drained(direct);
  const before = await outboxCounts();
  const addresses = Array.from({ length: lives }, () => `${randomUUID()}@example.org`);
  await Promise.all(addresses.map(life));
  for (const address of addresses)
    await world.platform.mailbox.waitFor(({ to, subject }) => to.includes(address) && subject.includes('is deleted'));
  const left = async () => {
    // Makes all removals due. Normally, a subscriber is removed a quarter of an hour after its form.
    await direct.query("UPDATE outbox SET not_before = created - interval '1 hour' WHERE kind = 'remove-subscriber'");
    return (await direct.query('SELECT FROM outbox WHERE accepted IS NULL')).rowCount;
  };
  await expect.poll(left).toBe(0);
  const after = await outboxCounts();
  for (const kind of ['form-created', 'subscribe', 'form-submitted', 'form-deleted', 'remove-subscriber'])
    expect([kind, (after.get(kind) ?? 0) - (before.get(kind) ?? 0)]).toEqual([kind, lives]);
});

it('behind a pool of transactions, writes to one register wait for one another', async () => {
  const token = await roleToken(world.platform.access, { 'form-service': ['form-admin'] }, { realm: 'demo' });
  const ask = (method: string, path: string, body?: unknown) =>
    call(`${forms.url}/form/v1/registers${path}`, { method, token, body });
  const name = `pooled-${randomUUID().slice(0, 8)}`;
  const creates = await Promise.all(
    Array.from({ length: 4 }, (_, nth) => ask('POST', '', { name, description: `${nth}`, entries: [`${nth}`] })),
  );
  expect(creates.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  const patches = Array.from({ length: 4 }, (_, nth) =>
    ask('PATCH', `/${name}`, { description: `${nth}`, entries: [`${nth}`] }),
  );
  expect((await Promise.all(patches)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const { description, entries } = (await ask('GET', `/${name}`)).body as { description: string; entries: string[] };
  expect(entries).toEqual([description]);
  expect((await ask('DELETE', `/${name}`)).status).toBe(204);
});

it('the form service and the platform server leave nothing in a session that a later statement needs', () => {
  for (const { statements, prepared, switches } of Object.values(pools)) {
    expect(statements.length).toBeGreaterThan(100);
    expect(switches()).toBeGreaterThan(20);
    expect(prepared).toEqual([]);
    expect(statements.filter((text) => sessionState.test(text))).toEqual([]);
  }
});
