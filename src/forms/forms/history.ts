// Records and reads the history of a form: what happened, when, and in which role. It contains neither names nor
// subjects of accounts. Instead, an account has a different pseudonym in each form, so that histories cannot be linked.
import { createHmac } from 'node:crypto';
import { operations } from './catalogue.ts';
import type { Form } from './form.ts';

/** The events of a history that the reconciler records, for each stage of the expiry. */
export const expiryEvents = { warn: 'warned', lock: 'locked' } as const;

const recorded = Object.values(operations).flatMap((entry) => ('recorded' in entry ? [entry.recorded] : []));

/** The names of all events that a history can contain. */
export const historyEvents = ['created', ...recorded, ...Object.values(expiryEvents)] as [string, ...string[]];

/** Who made a change: the role that allowed it, and the pseudonym of the account. */
export interface Author {
  role: string;
  account: string;
}

/** The role that the history records for changes that the reconciler makes. */
export const systemRole = 'system';

/** An entry as the database stores it: event, time (ISO 8601), role, pseudonym. */
export type HistoryRow = [event: string, time: string, role: string, account?: string | null];

export interface HistoryEntry {
  event: string;
  time: Date;
  /** The role of the author. Null for an event that happened before the service recorded histories. */
  role: string | null;
  /** The pseudonym of the account. Null for changes that the reconciler makes, and if the role is null. */
  account: string | null;
}

/**
 * Maximum number of entries in a form's history. A further entry replaces the 21st entry: the first 20 (`firstEntries`)
 * are always kept.
 */
export const keptEntries = 100;
const firstEntries = 20;

/**
 * Returns an SQL expression: the column `history` of the table alias `form`, with a further entry. The arguments are
 * SQL expressions. The first entries are never dropped, so that repeated changes cannot hide them.
 */
export function appendSql(entry: EntrySql, form = 'forms') {
  const column = `${form}.history`;
  return `(CASE WHEN jsonb_array_length(${column}) >= ${keptEntries} THEN ${column} - ${firstEntries} ELSE ${column} END
    || jsonb_build_array(${entrySql(entry)}))`;
}

/** The columns of an entry as SQL expressions. */
type EntrySql = Record<'event' | 'time' | 'role', string> & { account?: string };

/** Returns an SQL expression: an entry of a history. */
export function entrySql({ event, time, role, account = 'NULL' }: EntrySql): string {
  return `jsonb_build_array(${event}::text, ${time}::timestamptz, ${role}::text, ${account}::text)`;
}

export type Pseudonyms = ReturnType<typeof createPseudonyms>;

/** Returns a function that computes pseudonyms with the key `secret`. */
export function createPseudonyms(secret: string) {
  /** Returns 12 hexadecimal digits, always the same for the same account and form. */
  return (formId: string, issuer: string, subject: string): string =>
    createHmac('sha256', secret).update(['account', formId, issuer, subject].join('\0')).digest('hex').slice(0, 12);
}

/**
 * Returns the entries, oldest first. Adds missing entries that the form's columns imply: the form's creation, and a
 * submission or lock that happened before histories were kept. Recorded entries keep their order, even if the clocks of
 * the pods that recorded them differ.
 */
export function historyOf(form: Form, rows: readonly HistoryRow[], pseudonyms: Pseudonyms): HistoryEntry[] {
  const creator = pseudonyms(form.id, form.issuer, form.createdBy.id);
  const entries: HistoryEntry[] = rows.map(([event, time, role, account = null]) => ({
    ...{ event, role, account },
    time: new Date(time),
  }));
  const addMissing = (event: string, time: Date | null, role: string | null) => {
    if (time === null || rows.some(([known]) => known === event)) return;
    const next = entries.findIndex((entry) => entry.time > time);
    entries.splice(next === -1 ? entries.length : next, 0, { event, time, role, account: null });
  };
  addMissing(operations.submit.recorded, form.submitted, null);
  addMissing(expiryEvents.lock, form.locked, systemRole);
  const role = form.anonymousApplicant ? 'intake' : 'creator';
  return [{ event: 'created', time: form.created, role, account: creator }, ...entries];
}
