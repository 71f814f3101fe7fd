// Implements the command `erasures` on the database of the form service, or on that of the platform server.
import type pg from 'pg';
import {
  type Erasure,
  eraseAgain,
  erasureSchema,
  listErasures,
  skipSequences,
  withoutRepetitions,
} from '../../forms/expiry/erasure-store.ts';
import { deleteApplicantsAgain } from '../../platform-server/notifications/erased-applicants.ts';
import { systemClock } from '../../service/clock.ts';
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { AuditAction } from '../../service/operations/audit-actions.ts';
import type { Logger } from '../../service/operations/log.ts';
import { isStatementTimeout, withTransaction } from '../../service/postgres/postgres.ts';
import { databaseRefusal } from '../../service/quarantine/quarantine.ts';
import type { Surroundings } from '../database-command.ts';
import { migrateDatabase } from '../migrate/migrate.ts';
import type { ErasuresCommand } from './arguments.ts';

const batchSize = 500;

/** What a command deletes in the database of a service. */
interface Target {
  processName: string;
  owner: string;
  /** The name of the deleted objects in the summary. */
  objects: string;
  action: AuditAction;
  /** Deletes the objects of a batch, and returns them. */
  erase(transaction: pg.PoolClient, batch: Erasure[]): Promise<{ id: string; tenantId: string }[]>;
}

const formService: Target = {
  ...{ processName: 'forms', owner: 'the form service', objects: 'forms', action: 'form.delete' },
  erase: (transaction, batch) => eraseAgain(transaction, batch, systemClock()),
};
const platformServer: Target = {
  ...{
    processName: 'platform-server',
    owner: 'the platform server',
    objects: 'applicants',
    action: 'subscriber.delete',
  },
  erase: deleteApplicantsAgain,
};

/**
 * Runs the command, and returns its exit code. `lines` are the lines of the list that the actions `apply` and
 * `apply-platform` read. These two actions migrate the database first, because it may be restored from a backup of an
 * older version, whose tables lack columns that the deletions use. Throws StartupError if the database cannot be
 * migrated, or has no tables yet.
 */
export async function runErasures(
  command: Exclude<ErasuresCommand, { action: 'help' }>,
  { pool, url, log, print, lines }: Surroundings & { lines: AsyncIterable<string> },
): Promise<0 | 1> {
  if (command.action === 'export') {
    for await (const erasure of listErasures(pool, command.since)) print(JSON.stringify(erasure));
    return 0;
  }
  // Reads all lines before changing the database, because an invalid line may mean that the list was cut off.
  const list: Erasure[] = [];
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === '') continue;
    const erasure = parseLine(line);
    if (!erasure) {
      print(`Line ${number} is not one of "erasures export". Nothing was changed.`);
      return 1;
    }
    list.push(erasure);
  }
  const deletions = withoutRepetitions(list);
  const target = command.action === 'apply' ? formService : platformServer;
  await migrateDatabase({ ...target, url, log });
  if (target === formService) await skipSequences(pool);
  const applied: Applied = { done: 0, failed: [] };
  for (let at = 0; at < deletions.length; at += batchSize)
    await applyBatch({ pool, log, target, applied }, deletions.slice(at, at + batchSize));
  for (const line of applied.failed) print(line);
  print(`${deletions.length} deletions in the list; ${applied.done} ${target.objects} deleted again.`);
  return applied.failed.length > 0 ? 1 : 0;
}

interface Applied {
  /** Number of deleted forms or applicants. */
  done: number;
  /** One line for each deletion that Postgres rejected. */
  failed: string[];
}

interface Run {
  pool: pg.Pool;
  log: Logger;
  target: Target;
  applied: Applied;
}

/**
 * Applies the deletions of a batch in one transaction. If a row makes a statement fail or time out, divides the batch
 * into halves and applies each half. In the end, only the deletion of that row fails, and all others are applied.
 */
async function applyBatch(run: Run, batch: Erasure[]): Promise<void> {
  const { pool, log, target, applied } = run;
  try {
    const erased = await withTransaction(pool, (transaction) => target.erase(transaction, batch));
    applied.done += erased.length;
    const event = { action: target.action, by: 'erasures', kind: 'command' } as const;
    for (const { id, tenantId: tenant } of erased)
      auditLog(log).info({ audit: serviceEvent({ ...event, tenant, id }) }, 'deletion repeated');
  } catch (error) {
    const detail = isStatementTimeout(error) ? 'SQLSTATE 57014' : databaseRefusal(error)?.detail;
    if (detail === undefined) throw error;
    const [first] = batch;
    if (batch.length === 1) {
      applied.failed.push(`Postgres rejected the deletion of form ${first?.formId}: ${detail}.`);
      return;
    }
    const half = Math.ceil(batch.length / 2);
    await applyBatch(run, batch.slice(0, half));
    await applyBatch(run, batch.slice(half));
  }
}

function parseLine(line: string): Erasure | undefined {
  try {
    return erasureSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}
