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
import { isStatementTimeout, withTransaction } from '../../service/postgres/postgres.ts';
import { databaseRefusal } from '../../service/quarantine/quarantine.ts';
import type { Surroundings } from '../database-command.ts';
import { migrateDatabase } from '../migrate/migrate.ts';
import type { ErasuresCommand } from './arguments.ts';

const batchSize = 500;

const formService = { processName: 'forms', owner: 'the form service' };
const platformServer = { processName: 'platform-server', owner: 'the platform server' };

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
  const isPlatform = command.action === 'apply-platform';
  await migrateDatabase({ ...(isPlatform ? platformServer : formService), url, log });
  if (!isPlatform) await skipSequences(pool);
  const { done, failed } = await applyAll(pool, deletions, isPlatform ? deleteApplicantsAgain : eraseNow);
  for (const line of failed) print(line);
  print(`${deletions.length} deletions in the list; ${done} ${isPlatform ? 'applicants' : 'forms'} deleted again.`);
  return failed.length > 0 ? 1 : 0;
}

const eraseNow: Work = (transaction, batch) => eraseAgain(transaction, batch, systemClock());

type Work = (transaction: pg.PoolClient, batch: Erasure[]) => Promise<number>;

interface Applied {
  /** Number of deleted forms or applicants. */
  done: number;
  /** One line for each deletion that Postgres rejected. */
  failed: string[];
}

async function applyAll(pool: pg.Pool, deletions: Erasure[], work: Work): Promise<Applied> {
  const applied: Applied = { done: 0, failed: [] };
  for (let at = 0; at < deletions.length; at += batchSize)
    await applyBatch(pool, deletions.slice(at, at + batchSize), work, applied);
  return applied;
}

/**
 * Applies the deletions of a batch in one transaction. If a row makes a statement fail or time out, divides the batch
 * into halves and applies each half. In the end, only the deletion of that row fails, and all others are applied.
 */
async function applyBatch(pool: pg.Pool, batch: Erasure[], work: Work, applied: Applied): Promise<void> {
  try {
    applied.done += await withTransaction(pool, (transaction) => work(transaction, batch));
  } catch (error) {
    const detail = isStatementTimeout(error) ? 'SQLSTATE 57014' : databaseRefusal(error)?.detail;
    if (detail === undefined) throw error;
    const [first] = batch;
    if (batch.length === 1) {
      applied.failed.push(`Postgres rejected the deletion of form ${first?.formId}: ${detail}.`);
      return;
    }
    const half = Math.ceil(batch.length / 2);
    await applyBatch(pool, batch.slice(0, half), work, applied);
    await applyBatch(pool, batch.slice(half), work, applied);
  }
}

function parseLine(line: string): Erasure | undefined {
  try {
    return erasureSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}
