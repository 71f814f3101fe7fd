// Quarantines core clients that the configuration service refuses, and statuses that the API server refuses. A
// quarantined item is retried when its resource changes, when an operator releases it, or when a new version of the
// product runs.
import type pg from 'pg';
import type { Clock } from '../../src/service/clock.ts';
import type { Logger } from '../../src/service/operations/log.ts';
import { productVersion } from '../../src/service/operations/product-version.ts';
import type { NewQuarantineItem } from '../../src/service/quarantine/quarantine.ts';
import { putInQuarantine, untriedBy } from '../../src/service/quarantine/quarantine-store.ts';
import type { Writer } from '../lease.ts';

export interface Refusal {
  kind: 'core-client' | 'core-client-status';
  /** For the kind `core-client`, the client id. For `core-client-status`, the uid of the resource. */
  subject: string;
  /** Identifies the content that was refused. If the content changes, the item is retried. */
  version: string;
  /** The service that refused the item and its HTTP status, such as `configuration 400`; or `kubernetes refused`. */
  detail: string;
}

/** The refusals of earlier syncs, and a record of the refusals of the running sync. */
export interface Refusals {
  /**
   * True if an earlier sync recorded this refusal. The caller must then count the item as refused, without trying it
   * again.
   */
  isKnown(what: Omit<Refusal, 'detail'>): boolean;
  add(refusal: Refusal): void;
  /**
   * Quarantines new refusals, and removes the quarantine entries of items that were not refused in this sync. With
   * `clients`, removes only entries of the clients with these ids. Returns the number of new refusals. Writes in one
   * transaction by `transact`, which rejects if the run has lost its lease.
   */
  settle(transact: Writer['transact'], clients?: readonly string[]): Promise<number>;
}

const kinds: readonly Refusal['kind'][] = ['core-client', 'core-client-status'];
const itemOf = ({ subject, version }: Pick<Refusal, 'subject' | 'version'>) => `${subject}@${version.slice(0, 16)}`;

const knownSql = `
SELECT kind || ' ' || item AS name FROM quarantine WHERE kind = ANY ($1) AND NOT released AND NOT (${untriedBy('$2')})`;
const tidySql = `
DELETE FROM quarantine WHERE kind = ANY ($1) AND kind || ' ' || item <> ALL ($2)
  AND ($3::text[] IS NULL OR about ->> 'clientId' = ANY ($3))`;

export async function openRefusals(options: { pool: pg.Pool; clock: Clock; log: Logger }): Promise<Refusals> {
  const { pool, clock, log } = options;
  const { rows } = await pool.query<{ name: string }>(knownSql, [kinds, productVersion()]);
  const before = new Set(rows.map(({ name }) => name));
  const known = new Set<string>();
  /** The new refusals by kind and item. An item that is refused twice in a sync must be quarantined once. */
  const added = new Map<string, NewQuarantineItem>();
  return {
    isKnown(what) {
      const name = `${what.kind} ${itemOf(what)}`;
      if (before.has(name)) known.add(name);
      return before.has(name);
    },
    add({ detail, ...what }) {
      const about = { [what.kind === 'core-client' ? 'clientId' : 'resourceUid']: what.subject };
      const cause = { reason: 'service-refused', detail } as const;
      const item = itemOf(what);
      added.set(`${what.kind} ${item}`, { kind: what.kind, item, tenantId: null, about, ...cause });
    },
    async settle(transact, clients) {
      const names = [...known, ...added.keys()];
      await transact(async (db) => {
        await db.query(tidySql, [kinds, names, clients]);
        await putInQuarantine(db, [...added.values()], clock());
      });
      for (const { kind, about, reason, detail } of added.values())
        log.warn({ kind, ...about, reason, detail }, 'item quarantined');
      return added.size;
    },
  };
}
