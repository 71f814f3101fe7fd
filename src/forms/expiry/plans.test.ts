// Checks that Postgres uses the intended index in each batch statement, even with outdated statistics. A run of the
// reconciler changes many rows within minutes, so the statistics are often outdated.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import type { SharedPool } from '../../service/postgres/shared-pool.ts';
import { createFormList } from '../forms/list-store.ts';
import { createOperationsStore, type OperationsStore } from '../operations/store.ts';
import { deliveryServices } from '../outbox/claim-statements.ts';
import { createOutboxStore, type OutboxStore } from '../outbox/store.ts';
import { migrationsDirectory } from '../start.ts';
import type { Policy } from './expiry.ts';
import { type Purge, purgeBatch } from './purge-store.ts';
import { expiryStore, type Stage } from './store.ts';

const day = 86_400_000;
const retention = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 15 * day };
const policies: Policy[] = ['permit', 'licence'].map((definitionId) => ({ tenantId: 't', definitionId, retention }));
const now = new Date('2026-08-20T17:00:00.000Z');

const rowsSql = `
INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
  one_per_applicant, applicant, last_accessed, locked)
SELECT gen_random_uuid(), 't', CASE WHEN g % 2 = 0 THEN 'permit' ELSE 'licence' END,
  CASE WHEN g % 3 = 0 THEN 'Locked' ELSE 'Draft' END, $1::timestamptz - interval '60 days',
  '{"id":"s","name":"Intake"}', 'core', true, false, '{"channels":[]}', $1::timestamptz - g * interval '10 minutes',
  CASE WHEN g % 3 = 0 THEN $1::timestamptz - g * interval '2 minutes' END
FROM generate_series(1, 12000) g;
`;
const outboxSql = `
INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
SELECT id, 't', kind, '{"definitionId":"permit"}', last_accessed, last_accessed,
  CASE WHEN kind = 'form-created' THEN last_accessed END
FROM forms, unnest(ARRAY['form-created', 'form-locked']) kind ORDER BY last_accessed`;
const agedSql = [
  `INSERT INTO tombstones SELECT gen_random_uuid(), 't', 'permit', true, $1::timestamptz - g * interval '10 minutes'
   FROM generate_series(1, 12000) g`,
  `INSERT INTO idempotency_keys SELECT 't', 'i', 's', 'r', decode(md5(id::text), 'hex'), '\\x00', id, '{}', last_accessed
   FROM forms, (SELECT $1::timestamptz) now`,
  `INSERT INTO used_codes SELECT id, '\\x00', 'i', 's', last_accessed FROM forms, (SELECT $1::timestamptz) now`,
  `INSERT INTO code_attempts (form_id, address_hash, code_hash, issuer, subject, attempted)
   SELECT id, '\\x00', '\\x00', 'i', 's', last_accessed FROM forms, (SELECT $1::timestamptz) now`,
  `INSERT INTO code_sends (form_id, address_hash, sent)
   SELECT id, '\\x00', last_accessed FROM forms, (SELECT $1::timestamptz) now`,
  `INSERT INTO created_notices SELECT decode(md5(id::text), 'hex'), last_accessed, ARRAY[last_accessed]
   FROM forms, (SELECT $1::timestamptz) now`,
  `INSERT INTO reconciler_runs SELECT g, $1, $1::timestamptz - g * interval '10 minutes', 'succeeded', true, true, '{}'
   FROM generate_series(1, 12000) g`,
];

/** A connection that only plans statements and does not run them. */
interface Planner {
  client: pg.PoolClient;
  plans: string[];
}

let client: pg.Client;
let drop: () => Promise<void>;
beforeAll(async () => {
  const database = await createTestDatabase(migrationsDirectory);
  drop = database.drop;
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await drop();
});

function createPlanner(): Planner {
  const plans: string[] = [];
  async function query(sql: string, values?: unknown[]) {
    const [, settings = '', statement = ''] = /^\s*((?:SET LOCAL [^;]*(?:;\s*|$))*)([\s\S]*)$/.exec(sql) ?? [];
    if (settings) await client.query(settings);
    if (statement) {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${statement}`, values);
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    }
    // For a query with several statements, node-postgres returns an array of results.
    const nothing = { rows: [], rowCount: 0 };
    return settings && statement ? [nothing] : nothing;
  }
  return { client: { query } as unknown as pg.PoolClient, plans };
}

/** Returns the plan of the only statement that `work` runs. */
async function planOf(work: (client: pg.PoolClient) => Promise<unknown>): Promise<string> {
  const planner = createPlanner();
  await client.query('BEGIN');
  try {
    await work(planner.client);
  } finally {
    await client.query('ROLLBACK');
  }
  expect(planner.plans).toHaveLength(1);
  return planner.plans[0] ?? '';
}

const scanned = (plan: string) => [...plan.matchAll(/Seq Scan on (\w+)/g)].map(([, table]) => table);
const walked = (plan: string) =>
  new Set([...plan.matchAll(/Index (?:Only )?Scan (?:Backward )?using (\w+)/g)].map(([, name]) => name));

const draftIndexes = [
  ...['forms_drafts_to_expire', 'forms_pkey', 'quarantine_by_form'],
  ...['applicant_addresses_pkey', 'applicant_addresses_by_hash', 'created_notices_pkey'],
];
const stageIndexes: [Stage, string[]][] = [
  ['warn', draftIndexes],
  ['lock', draftIndexes],
  [
    'delete',
    ['forms_locked_to_expire', 'outbox_by_form', 'outbox_subscribes_by_form', 'forms_pkey', 'quarantine_by_form'],
  ],
];
const purgeIndexes: [Purge, string[]][] = [
  ['tombstones', ['tombstones_by_age']],
  ['idempotency_keys', ['idempotency_keys_by_age']],
  ['used_codes', ['used_codes_by_age']],
  ['code_attempts', ['code_attempts_by_age']],
  ['code_sends', ['code_sends_by_age']],
  ['created_notices', ['created_notices_by_age']],
  ['outbox', ['outbox_pkey', 'forms_pkey']],
  ['reconciler_runs', ['reconciler_runs_by_end']],
];
const sequences = Array.from({ length: 64 }, (_, index) => String(index + 1));
const claim = { service: 'events', now, limit: 64, lease: 60_000 } as const;
const outboxIndexes: [string, (store: OutboxStore) => Promise<unknown>, string[]][] = [
  ['claim', (store) => store.claim(claim), ['outbox_due', 'outbox_open_by_form', 'outbox_pkey', 'forms_pkey']],
  [
    'claim that goes on from a position',
    (store) => store.claim({ ...claim, after: { notBefore: now.toISOString(), sequence: '7' } }),
    ['outbox_due', 'outbox_open_by_form', 'outbox_pkey', 'forms_pkey'],
  ],
  [
    'acceptance',
    (store) =>
      store.accept(
        sequences.map((sequence) => ({ row: { sequence }, subscriberId: "o'b\\rien" })),
        now,
      ),
    ['outbox_pkey', 'outbox_by_form', 'outbox_subscribes_by_form', 'forms_pkey'],
  ],
  [
    'failure',
    (store) =>
      store.fail(
        sequences.map((sequence) => ({ kind: 'failed', row: { sequence, claimedUntil: now }, notBefore: now })),
      ),
    ['outbox_pkey'],
  ],
  [
    'quarantining',
    (store) =>
      store.quarantine(
        sequences.map((sequence) => ({
          row: { sequence, claimedUntil: now, formId: '', tenantId: 't', kind: 'form-locked' },
          reason: 'service-refused',
          detail: 'events 400',
        })),
        now,
      ),
    ['outbox_pkey', 'outbox_by_form', 'outbox_subscribes_by_form', 'forms_pkey'],
  ],
];

const policy = { tenantId: 't', policies, now, grace: 0 };
const operationsIndexes: [string, (store: OperationsStore) => Promise<unknown>, string[]][] = [
  ['undelivered rows', (store) => store.undelivered('t', now), ['outbox_due']],
  ['overdue drafts', (store) => store.overdue('lock', policy), ['forms_drafts_to_expire']],
  ['overdue deletions', (store) => store.overdue('delete', policy), ['forms_locked_to_expire']],
  ['definitions', (store) => store.definitions('t'), ['forms_drafts_to_expire', 'forms_locked_to_expire']],
];

const sharedPoolOf = (client: pg.PoolClient): SharedPool => ({
  query: (_requester, text, values) => client.query(text, values),
  transaction: (_requester, work) => work(client),
});

describe.each(['of empty tables', 'of the tables as they are'])('with statistics %s', (statistics) => {
  beforeAll(async () => {
    if (statistics === 'of empty tables') {
      await client.query('VACUUM ANALYZE');
      await client.query('ALTER TABLE forms SET (autovacuum_enabled = off)');
      await client.query('ALTER TABLE outbox SET (autovacuum_enabled = off)');
      await client.query(rowsSql.trim().replace(/;$/, ''), [now]);
      await client.query(outboxSql);
      for (const sql of agedSql) await client.query(sql, [now]);
    } else await client.query('VACUUM ANALYZE');
  });

  it.each(stageIndexes)('a batch of %s scans its partial index and looks up forms', async (stage, indexes) => {
    const plan = await planOf((db) =>
      expiryStore.batch(db, stage, { position: { policies }, now, limit: 1_000, dryRun: false }),
    );
    expect([scanned(plan), walked(plan)]).toEqual([[], new Set(indexes)]);
    if (stage === 'warn') return;
    const formId = '3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551';
    const bare = await planOf((db) => expiryStore.takeBare(db, stage, { position: { policies }, now, formId }));
    expect(scanned(bare)).toEqual([]);
  });

  it.each(stageIndexes)(
    'a count of the due forms of each tenant for the stage %s scans its partial index',
    async (stage) => {
      const plan = await planOf((db) => expiryStore.countByTenant(db, stage, { policies, now, most: 10_001 }));
      const index = stage === 'delete' ? 'forms_locked_to_expire' : 'forms_drafts_to_expire';
      expect([scanned(plan), walked(plan)]).toEqual([[], new Set([index])]);
    },
  );

  it.each(purgeIndexes)('a purge of %s scans from the oldest row', async (purge, indexes) => {
    const options = { now, after: undefined, limit: 1_000, dryRun: false };
    const plan = await planOf((db) => purgeBatch(db, purge, options));
    expect([scanned(plan), walked(plan)]).toEqual([[], new Set(indexes)]);
  });

  it.each(operationsIndexes)(
    'a count of %s for administrators scans its partial index',
    async (_name, work, indexes) => {
      const plan = await planOf((db) => {
        return work(createOperationsStore(sharedPoolOf(db), deliveryServices));
      });
      expect([scanned(plan), walked(plan)]).toEqual([[], new Set(indexes)]);
    },
  );

  it.each(['asc', 'desc'] as const)(
    'a list of the forms of a rare definition scans its index (%s)',
    async (direction) => {
      const query = { tenantId: 't', criteria: { definitionIdEquals: 'rare' }, top: 25, includeData: false };
      const more = { sortBy: 'created', sortDirection: direction, includeTotal: false, after: undefined } as const;
      const plan = await planOf((db) => createFormList(sharedPoolOf(db))({ ...query, ...more }));
      expect([scanned(plan), walked(plan)]).toEqual([[], new Set(['forms_by_definition'])]);
    },
  );

  it.each(outboxIndexes)('a %s of the outbox uses index lookups', async (_name, work, indexes) => {
    const plan = await planOf((db) =>
      work(createOutboxStore({ pool: db, removalDelay: 900_000, noticeTime: 0, deleteFiles: true })),
    );
    expect([scanned(plan), walked(plan)]).toEqual([[], new Set(indexes)]);
  });
});
