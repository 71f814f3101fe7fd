// Writes and reads the records of the reconciler's runs, which contain only counts and times. The reconciler writes the
// records, and the form service reads them.
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { Retention } from './expiry.ts';

export interface RunRecord {
  /** The generation of the run's lease; a bigint, as text. */
  generation: string;
  started: Date;
  finished: Date;
  /** `stopped` means that the run was asked to end early. */
  outcome: 'succeeded' | 'failed' | 'stopped';
  /** True if the expiry succeeded; null if the run skipped it. */
  expirySucceeded: boolean | null;
  /** True if the sync of core clients succeeded; null if the run skipped it. */
  clientsSucceeded: boolean | null;
  /** Number of forms or rows for each outcome. */
  counts: Record<string, number>;
  /** Number of core client resources for each condition, such as `Ready=True`; null if the run did not read them. */
  conditions: Record<string, number> | null;
  /**
   * The time at which the most overdue draft should have been locked. Null if no draft is overdue, or if the run did
   * not measure this time.
   */
  oldestOverdue: Date | null;
  /** Number of locked forms whose deletion is more than a day overdue; null if the run did not count them. */
  overdueDeletions: number | null;
  /** Number of forms for each status; null if the run did not count them. */
  formsByStatus: Record<string, number> | null;
  /** The default retention periods of the run; null in a record that an older version wrote. */
  retention: Retention | null;
}

/** A summary of the latest runs. */
export interface RunHistory {
  last: RunRecord;
  /**
   * The end of the last run in which the expiry succeeded; null if it never succeeded, or if none of the last 20 runs
   * included the expiry.
   */
  expirySuccess: Date | null;
  clientsSuccess: Date | null;
  /** True if one of the last 20 runs included the expiry. */
  expiryIncluded: boolean;
  clientsIncluded: boolean;
  /** The conditions of the core client resources, from the last run that read them. */
  conditions: Record<string, number> | null;
  /** `RunRecord.oldestOverdue` of the last run that measured it or in which the expiry succeeded. */
  oldestOverdue: Date | null;
  overdueDeletions: number | null;
  /** The number of forms for each status, from the last run that counted the forms. */
  formsByStatus: Record<string, number> | null;
}

/**
 * Number of latest runs that are searched for a part of a run: the expiry, or the sync of core clients. A part that is
 * in none of these runs counts as turned off. Without this limit, the last success of such a part would seem overdue
 * forever.
 */
const lastRuns = 20;

const writeSql = `
INSERT INTO reconciler_runs
  (generation, started, finished, outcome, expiry_succeeded, clients_succeeded, counts, conditions, oldest_overdue,
    overdue_deletions, forms_by_status, retention)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;

const columns = `generation, started, finished, outcome, counts, conditions, retention,
  expiry_succeeded AS "expirySucceeded", clients_succeeded AS "clientsSucceeded", oldest_overdue AS "oldestOverdue",
  overdue_deletions AS "overdueDeletions", forms_by_status AS "formsByStatus"`;

const isIncluded = (part: string) => `EXISTS (
  SELECT FROM (SELECT ${part}_succeeded AS result FROM reconciler_runs ORDER BY generation DESC LIMIT ${lastRuns}) AS last
  WHERE result IS NOT NULL)`;

// The latest run has the highest generation. A run on a node with a wrong clock may have ended in the future.
const lastSuccess = (
  part: string,
) => `(SELECT finished FROM reconciler_runs WHERE ${part}_succeeded AND ${isIncluded(part)}
  ORDER BY generation DESC LIMIT 1)`;

const historySql = `
SELECT generation, started, finished, outcome, counts, retention,
  expiry_succeeded AS "expirySucceeded", clients_succeeded AS "clientsSucceeded",
  ${lastSuccess('expiry')} AS "expirySuccess",
  ${lastSuccess('clients')} AS "clientsSuccess",
  ${isIncluded('expiry')} AS "expiryIncluded",
  ${isIncluded('clients')} AS "clientsIncluded",
  (SELECT conditions FROM reconciler_runs WHERE conditions IS NOT NULL ORDER BY generation DESC LIMIT 1) AS conditions,
  (SELECT oldest_overdue FROM reconciler_runs WHERE expiry_succeeded OR oldest_overdue IS NOT NULL
    ORDER BY generation DESC LIMIT 1) AS "oldestOverdue",
  (SELECT overdue_deletions FROM reconciler_runs WHERE overdue_deletions IS NOT NULL
    ORDER BY generation DESC LIMIT 1) AS "overdueDeletions",
  (SELECT forms_by_status FROM reconciler_runs WHERE forms_by_status IS NOT NULL
    ORDER BY generation DESC LIMIT 1) AS "formsByStatus"
FROM reconciler_runs ORDER BY generation DESC LIMIT 1`;

type HistoryRow = Omit<RunRecord, keyof RunHistory> & Omit<RunHistory, 'last'>;

export async function writeRun(db: Queryable, record: RunRecord): Promise<void> {
  await db.query(writeSql, [
    record.generation,
    record.started,
    record.finished,
    record.outcome,
    record.expirySucceeded,
    record.clientsSucceeded,
    record.counts,
    record.conditions,
    record.oldestOverdue,
    record.overdueDeletions,
    record.formsByStatus,
    record.retention,
  ]);
}

/** Returns the default retention periods from the last run that recorded them. */
export async function readRetention(db: Queryable): Promise<Retention | undefined> {
  const sql = 'SELECT retention FROM reconciler_runs WHERE retention IS NOT NULL ORDER BY generation DESC LIMIT 1';
  return (await db.query<{ retention: Retention }>(sql)).rows[0]?.retention;
}

/** Returns the last runs, newest first. */
export async function readRecentRuns(db: Queryable, count: number): Promise<RunRecord[]> {
  const sql = `SELECT ${columns} FROM reconciler_runs ORDER BY generation DESC LIMIT $1`;
  return (await db.query<RunRecord>(sql, [count])).rows;
}

/** Returns a summary of the latest runs. Returns undefined before the first run. */
export async function readRunHistory(db: Queryable): Promise<RunHistory | undefined> {
  const [row] = (await db.query<HistoryRow>(historySql)).rows;
  if (!row) return undefined;
  const { expirySuccess, clientsSuccess, expiryIncluded, clientsIncluded, ...others } = row;
  const { conditions, oldestOverdue, overdueDeletions, formsByStatus } = others;
  const parts = { expirySuccess, clientsSuccess, expiryIncluded, clientsIncluded };
  return { last: row, ...parts, conditions, oldestOverdue, overdueDeletions, formsByStatus };
}
