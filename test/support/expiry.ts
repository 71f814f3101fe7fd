// A database with drafts and locked forms, a clock that only the test moves, and a way to run the reconciler on them.
// The test sets the retention periods of each definition; other tests cover reading them from the platform.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createProgress } from '../../reconciler/progress.ts';
import { type RunOptions, type RunResult, run } from '../../reconciler/run.ts';
import type { Policy, Retention } from '../../src/forms/expiry/expiry.ts';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import type { Retentions, SkippedDefinition } from '../../src/forms/expiry/retention.ts';
import { expiryStore } from '../../src/forms/expiry/store.ts';
import { createUrns } from '../../src/service/urn.ts';
import { type CapturedLog, captureLog } from './captured-log.ts';
import { createTestDatabase } from './postgres.ts';

const minute = 60_000;
export const day = 24 * 60 * minute;

const defaults: Retention = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 15 * day };

/** The row of a form in the database. */
export interface FormState {
  status: string;
  lastAccessed: Date;
  warned: Date | null;
  locked: Date | null;
  held: boolean;
  revision: string;
}

export interface OutboxState {
  kind: string;
  facts: Record<string, unknown>;
  created: Date;
  notBefore: Date;
  accepted: Date | null;
}

export interface NewForm {
  /** Milliseconds since the last access to the form. */
  age?: number;
  /** Milliseconds since the form was locked; without it, the form is a draft. */
  lockedFor?: number;
  held?: boolean;
  definitionId?: string;
  tenantId?: string;
  files?: object;
  subscriberId?: string;
  /**
   * True if the event service has accepted the event form-locked; false if the event is not delivered yet; undefined if
   * the outbox has no row for the event.
   */
  noticeAccepted?: boolean;
}

export interface ExpiryWorld {
  url: string;
  pool: pg.Pool;
  log: CapturedLog;
  now(): Date;
  advance(milliseconds: number): void;
  add(form?: NewForm): Promise<string>;
  /** Returns the row of a form; undefined once the form is deleted. */
  form(id: string): Promise<FormState | undefined>;
  outbox(id: string): Promise<OutboxState[]>;
  /** Sets retention periods that differ from the defaults for one definition. */
  retain(definitionId: string, retention: Partial<Retention>): void;
  /** Makes the reconciler skip a definition for `reason`, as if the definition could not be read. */
  breakDefinition(definitionId: string, reason: SkippedDefinition['reason']): void;
  run(changes?: Partial<RunOptions>): Promise<RunResult>;
  runOptions(changes?: Partial<RunOptions>): RunOptions;
  close(): Promise<void>;
}

export const tenant = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';

export async function startExpiryWorld(): Promise<ExpiryWorld> {
  const database = await createTestDatabase(formMigrations.directory);
  const { pool } = database;
  const log = captureLog();
  let moment = Date.parse('2026-03-20T10:00:00.123Z');
  const clock = () => new Date(moment);
  const retentions = new Map<string, Partial<Retention>>();
  const skipped = new Map<string, SkippedDefinition['reason']>();

  const readRetentions: RunOptions['readRetentions'] = async (keys) => {
    const found: Retentions = { policies: [], skipped: [] };
    for (const { tenantId, definitionId } of keys) {
      const reason = skipped.get(definitionId);
      const policy: Policy = { tenantId, definitionId, retention: { ...defaults, ...retentions.get(definitionId) } };
      if (reason) found.skipped.push({ tenantId, definitionId, reason });
      else found.policies.push(policy);
    }
    return found;
  };

  const runOptions: ExpiryWorld['runOptions'] = (changes) => ({
    arguments: { only: undefined, dryRun: false, allowPrune: false },
    pool,
    store: expiryStore,
    readRetentions,
    defaults,
    batchSize: 1_000,
    clock,
    // Only the tests of the comparison with Postgres's clock set a tolerance.
    clockTolerance: Number.POSITIVE_INFINITY,
    log: log.log,
    signal: new AbortController().signal,
    progress: createProgress({ clock, log: log.log, terminal: undefined }),
    // This world has no notification service: the checks find no subscribers, and removals do nothing.
    checks: {
      notifications: { subscribersOf: async () => [], removeSubscriber: async () => undefined },
      urns: createUrns('urn:example'),
    },
    clients: { sync: async () => ({ counts: {}, conditions: {}, failures: [], skipped: 'not here' }) },
    leaseDuration: minute,
    ...changes,
  });

  return {
    url: database.url,
    pool,
    log,
    now: clock,
    advance(milliseconds) {
      moment += milliseconds;
    },
    add: (form) => addForm(pool, clock(), form),
    form: (id) => readForm(pool, id),
    outbox: (id) => readOutbox(pool, id),
    retain: (definitionId, retention) => void retentions.set(definitionId, retention),
    breakDefinition: (definitionId, reason) => void skipped.set(definitionId, reason),
    run: (changes) => run(runOptions(changes)),
    runOptions,
    close: database.drop,
  };
}

async function addForm(pool: pg.Pool, now: Date, form: NewForm = {}): Promise<string> {
  const id = randomUUID();
  const { age = 0, lockedFor, held = false, definitionId = 'permit', tenantId = tenant } = form;
  const ago = (milliseconds: number) => new Date(now.getTime() - milliseconds);
  const locked = lockedFor === undefined ? null : ago(lockedFor);
  const accessed = locked && age === 0 ? ago((lockedFor ?? 0) + 15 * day) : ago(age);
  await pool.query(
    `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer, anonymous_applicant,
      one_per_applicant, applicant, last_accessed, locked, held, data, files, subscriber_id)
    VALUES ($1, $2, $3, $4, $5, '{"id":"intake","name":"Intake"}', 'core', true, false, $6, $5, $7, $8, $9, $10, $11)`,
    [
      id,
      tenantId,
      definitionId,
      locked ? 'Locked' : 'Draft',
      accessed,
      { addressAs: 'Ana', channels: [{ channel: 'email', address: `${id}@example.org` }] },
      locked,
      held,
      { name: 'an answer' },
      form.files ?? {},
      form.subscriberId ?? null,
    ],
  );
  if (form.noticeAccepted !== undefined)
    await pool.query(
      `INSERT INTO outbox (form_id, tenant_id, kind, facts, created, not_before, accepted)
      VALUES ($1, $2, 'form-locked', $3, $4, $4, $5)`,
      [id, tenantId, { definitionId }, locked, form.noticeAccepted ? locked : null],
    );
  return id;
}

async function readForm(pool: pg.Pool, id: string): Promise<FormState | undefined> {
  const sql = `SELECT status, last_accessed AS "lastAccessed", warned, locked, held, revision FROM forms WHERE id = $1`;
  return (await pool.query<FormState>(sql, [id])).rows[0];
}

async function readOutbox(pool: pg.Pool, id: string): Promise<OutboxState[]> {
  const sql = `SELECT kind, facts, created, not_before AS "notBefore", accepted FROM outbox
    WHERE form_id = $1 ORDER BY sequence`;
  return (await pool.query<OutboxState>(sql, [id])).rows;
}
