// Implements the command `quarantine`. It detects to which service a database belongs, and lists or releases the
// quarantined items in it.
import type pg from 'pg';
import { createFormsQuarantine } from '../../forms/quarantine/store.ts';
import { createNoticeQuarantine } from '../../platform-server/notifications/job-quarantine.ts';
import { systemClock } from '../../service/clock.ts';
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import { unsharedPool } from '../../service/postgres/shared-pool.ts';
import type { QuarantineItem } from '../../service/quarantine/quarantine.ts';
import {
  type QuarantinePosition,
  type QuarantineStore,
  type ReleaseOutcome,
  releaseInPages,
} from '../../service/quarantine/quarantine-store.ts';
import { createWorkQuarantine } from '../../token-handler/clients/pending-work-store.ts';
import type { Surroundings } from '../database-command.ts';
import type { QuarantineCommand } from './arguments.ts';

/** Opens the quarantine of each service. Each key is the name of a table that only that service's database has. */
const services: Record<string, (pool: pg.Pool) => QuarantineStore> = {
  outbox: (pool) => createFormsQuarantine({ pool: unsharedPool(pool), clock: systemClock }),
  client_registrations: (pool) => createWorkQuarantine({ pool, clock: systemClock }),
  deliveries: createNoticeQuarantine,
};

const tablesSql = 'SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NOT NULL';

/** Throws an Error if the database has no table `quarantine`, or belongs to no known service. */
async function openQuarantine(pool: pg.Pool): Promise<QuarantineStore> {
  const names = ['quarantine', ...Object.keys(services)];
  const { rows } = await pool.query<{ name: string }>(tablesSql, [names]);
  const found = rows.map(({ name }) => name);
  const create = Object.entries(services).find(([table]) => found.includes(table))?.[1];
  if (!create || !found.includes('quarantine')) throw new Error('the database has no quarantine; run migrations first');
  return create(pool);
}

/** Runs the command, and returns its exit code. */
export async function runQuarantine(
  command: Exclude<QuarantineCommand, { action: 'help' }>,
  { pool, log, print }: Omit<Surroundings, 'url'>,
): Promise<0 | 1> {
  const store = await openQuarantine(pool);
  if (command.action === 'list') {
    let count = 0;
    for await (const item of allOf(store, command.kind)) {
      if (count === 0 && !command.json) print(header);
      print(command.json ? JSON.stringify(item) : lineOf(item));
      count += 1;
    }
    if (count === 0 && !command.json) print('The quarantine is empty.');
    return 0;
  }
  const { choice } = command;
  let count = 0;
  const report = (items: readonly ReleaseOutcome[]) => {
    for (const { id, kind, tenantId, released } of items) {
      print(`${released ? 'released' : 'still quarantined:'} ${kind} ${id}`);
      if (!released) continue;
      const event = { action: 'quarantine.release', by: 'quarantine', kind: 'command' } as const;
      const audit = serviceEvent({ ...event, tenant: tenantId ?? undefined, id });
      auditLog(log).info({ audit }, 'quarantined item released');
    }
    count += items.length;
  };
  await releaseInPages((after) => store.release(choice, after), report);
  const isMissing = count === 0 && choice !== 'all';
  if (count === 0) print(isMissing ? 'The item is not in quarantine.' : 'The quarantine is empty.');
  return isMissing ? 1 : 0;
}

async function* allOf(store: QuarantineStore, kind: string | undefined): AsyncGenerator<QuarantineItem> {
  let after: QuarantinePosition | undefined;
  do {
    const { items, next } = await store.list({ kind, after, top: 100 });
    yield* items;
    after = next;
  } while (after);
}

const widths = [36, 18, 17, 16, 8, 20];
const columns = (cells: string[]) =>
  cells
    .map((cell, at) => cell.padEnd(widths[at] ?? 0))
    .join('  ')
    .trimEnd();
const header = columns(['ID', 'KIND', 'REASON', 'DETAIL', 'TRIES', 'FIRST SEEN', 'ABOUT']);

function lineOf({ id, kind, reason, detail, attempts, firstSeen, about, released }: QuarantineItem): string {
  const ids = Object.entries(about).map(([name, value]) => `${name}=${value}`);
  const moment = firstSeen.toISOString().replace(/\.\d+Z$/, 'Z');
  return columns([
    id,
    kind,
    reason,
    detail,
    String(attempts),
    moment,
    [...ids, ...(released ? ['released'] : [])].join(' '),
  ]);
}
