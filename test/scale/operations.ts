// Measures requests to one pod of the form service on a filled database, one after another and at full load, and the
// queries of the metrics and of the reconciler.
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import pino from 'pino';
import { createAddressHashes } from '../../src/forms/addresses/address.ts';
import { countForms } from '../../src/forms/expiry/count-forms.ts';
import { createOutboxStore } from '../../src/forms/outbox/store.ts';
import type { ExpiryBench } from '../bench/expiry-world.ts';
import { quantile } from '../bench/latency.ts';
import { filledDefinition } from './fill.ts';

export interface Timing {
  name: string;
  /** Latencies in milliseconds. */
  p50: number;
  p99: number;
  count: number;
}

/** The key that the bench gives to the form service. */
const codeKey = 'a key of benches with more than 32 characters';

/** Fills the table of applicants' addresses, so that the pod does not fill it during the measurement. */
export async function fillAddresses(pool: pg.Pool): Promise<void> {
  const { rowCount } = await pool.query('SELECT FROM applicant_addresses LIMIT 1');
  if (rowCount === 0)
    await pool.query(`INSERT INTO applicant_addresses SELECT id, substr(sha256(id::text::bytea), 1, 16) FROM forms`);
  await pool.query("UPDATE address_index SET key_id = $1, complete = true, next_walk = 'infinity'", [
    createAddressHashes(codeKey).keyId,
  ]);
  await pool.query('VACUUM (ANALYZE) applicant_addresses');
}

const rounds = 200;

export async function measureRequests(bench: ExpiryBench, url: string): Promise<Timing[]> {
  const headers = { authorization: `Bearer ${bench.token}`, 'content-type': 'application/json' };
  const admin = { authorization: `Bearer ${bench.adminToken}` };
  const ids: string[] = [];
  const send = async (method: string, path: string, more: { headers?: object; body?: unknown } = {}) => {
    const response = await fetch(`${url}/form/v1/forms${path}`, {
      method,
      headers: { ...headers, ...more.headers },
      ...(more.body !== undefined && { body: JSON.stringify(more.body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  const { rows } = await bench.pool.query<{ id: string }>(
    `SELECT id FROM forms TABLESAMPLE SYSTEM (1) WHERE status = 'Draft' AND tenant_id = $1 LIMIT 1000`,
    [bench.tenant],
  );
  const address = (index: number) => `scale-${index % rounds}@example.org`;
  const data = { data: { name: 'x'.repeat(1_000) }, files: {} };
  const of = (index: number) => ids[index % ids.length];
  const steps: [string, (index: number) => Promise<unknown>][] = [
    [
      'create',
      async (index) => {
        const channels = [{ channel: 'email', address: address(index) }];
        const body = { definitionId: filledDefinition, applicant: { addressAs: 'Ana', channels } };
        ids.push((await send('POST', '', { body })).id);
      },
    ],
    ['save (1 KiB)', (index) => send('PUT', `/${rows[index % rows.length]?.id}/data`, { body: data })],
    ['save again', (index) => send('PUT', `/${of(index)}/data`, { body: data })],
    ['read', (index) => send('GET', `/${of(index)}`, { headers: admin })],
    ['list, first page', () => send('GET', '?top=50', { headers: admin })],
    [
      'list by status, sorted',
      () =>
        send('GET', `?top=50&sortBy=status&criteria=${encodeURIComponent('{"statusEquals":"Draft"}')}`, {
          headers: admin,
        }),
    ],
    ['list with total', () => send('GET', '?top=50&includeTotal=true', { headers: admin })],
    ['search by address', (index) => send('GET', '', { headers: { ...admin, 'x-applicant-address': address(index) } })],
  ];
  // Retry the first create. On a busy machine, the first calls of a new pod to the platform may fail, and the pod then
  // refuses creates.
  const create = steps[0]?.[1];
  for (let attempt = 0; attempt < 20 && ids.length === 0; attempt += 1)
    await create?.(attempt).catch(() => delay(3_000));
  const timings: Timing[] = [];
  for (const [name, step] of steps) timings.push(await time(name, rounds, step));
  return timings;
}

/** Measures the queries that read many rows: one at each scrape of the metrics, one in each run of the reconciler. */
export async function measureQueries(pool: pg.Pool): Promise<Timing[]> {
  const log = pino({ level: 'silent' });
  const store = createOutboxStore({ pool, removalDelay: 0, noticeTime: 0, deleteFiles: false });
  return [
    await time('outbox backlog, at each scrape', 20, () => store.backlog(new Date())),
    await time('forms by status, in each run', 3, async () => {
      if (!(await countForms({ pool, log, limit: 120_000 }))) throw new Error('the count took too long');
    }),
  ];
}

async function time(name: string, count: number, work: (index: number) => Promise<unknown>): Promise<Timing> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const started = performance.now();
    await work(index);
    times.push(performance.now() - started);
    await delay(1);
  }
  return { name, count, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}
