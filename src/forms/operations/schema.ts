// The response schema of the operations endpoint.
import { z } from 'zod';
import type { Operations } from './operations.ts';

const timestamp = z.iso.datetime();
const moment = timestamp.nullable();
const count = z.int().nonnegative();
const isMinimum = z.boolean().meta({ description: 'True if there may be more: counts stop at 1,000' });
const bounded = { count, isMinimum };

export const operationsResponse = z
  .strictObject({
    asOf: timestamp,
    scope: z.enum(['tenant', 'all']).meta({ description: 'Whether the data is that of one tenant or of all tenants' }),
    reconciler: z.strictObject({
      lastSuccess: z.strictObject({ expire: moment, clients: moment }),
      runs: z
        .array(
          z.strictObject({
            started: timestamp,
            finished: timestamp,
            outcome: z.enum(['succeeded', 'failed', 'stopped']),
            expirySucceeded: z.boolean().nullable().meta({ description: 'null if the run left it out' }),
            clientsSucceeded: z.boolean().nullable().meta({ description: 'null if the run left it out' }),
            counts: z
              .record(z.string(), z.number())
              .nullable()
              .meta({ description: 'What the run did, in all tenants; null if the scope is one tenant' }),
          }),
        )
        .meta({ description: 'The last ten, newest first' }),
    }),
    coreClients: z.record(z.string(), z.number()).nullable().meta({
      description:
        'CoreClient resources by condition and status; null if the scope is one tenant, or if they were never read',
    }),
    overdue: z
      .strictObject({
        drafts: z.strictObject(bounded).nullable().meta({
          description: 'Drafts whose lock is more than six hours overdue; null for all tenants',
        }),
        oldest: moment.meta({ description: 'When the first overdue draft should have been locked' }),
        deletions: z.strictObject(bounded).nullable().meta({
          description: 'Locked forms whose deletion is more than a day overdue; null if no run has counted them',
        }),
      })
      .meta({ description: 'For all tenants as the last run of the reconciler left it' }),
    quarantine: z.strictObject({ ...bounded, released: count.meta({ description: 'Of these, items to be retried' }) }),
    outbox: z
      .strictObject({ ...bounded, oldest: moment.meta({ description: 'When the oldest of them was written' }) })
      .meta({ description: 'Events and notices that are due and not delivered' }),
    storage: z
      .strictObject({
        bytes: count.meta({ description: 'What the forms occupy in the database, at the last measurement' }),
        limit: count.meta({ description: 'Beyond it, new forms are refused' }),
        measured: moment.meta({ description: 'null before the first measurement' }),
      })
      .nullable()
      .meta({ description: 'null for all tenants' }),
    limits: z
      .strictObject({
        pod: z.string(),
        since: timestamp,
        refused: z.array(
          z.strictObject({
            method: z.string(),
            route: z.string(),
            status: z.int(),
            count: count.meta({ description: 'Since the process started' }),
            last: timestamp,
          }),
        ),
      })
      .meta({
        description:
          'Requests that this pod refused because a limit was reached (429) or because something was busy or failed (503), latest first. Each pod lists only its own refusals',
      }),
  })
  .meta({ id: 'Operations' });

const isoOf = (date: Date | null | undefined) => date?.toISOString() ?? null;

export function operationsView(operations: Operations): z.input<typeof operationsResponse> {
  const { asOf, isForAll, runs, history, overdue, quarantine, outbox, storage, limits } = operations;
  const shown = (found: { count: number; isMinimum: boolean } | null) =>
    found && { count: found.count, isMinimum: found.isMinimum };
  return {
    asOf: asOf.toISOString(),
    scope: isForAll ? 'all' : 'tenant',
    reconciler: {
      lastSuccess: { expire: isoOf(history?.expirySuccess), clients: isoOf(history?.clientsSuccess) },
      runs: runs.map(({ started, finished, outcome, expirySucceeded, clientsSucceeded, counts }) => ({
        started: started.toISOString(),
        finished: finished.toISOString(),
        outcome,
        expirySucceeded,
        clientsSucceeded,
        counts: isForAll ? counts : null,
      })),
    },
    coreClients: isForAll ? (history?.conditions ?? null) : null,
    overdue: { drafts: shown(overdue.drafts), oldest: isoOf(overdue.oldest), deletions: shown(overdue.deletions) },
    quarantine: { count: quarantine.count, isMinimum: quarantine.isMinimum, released: quarantine.released },
    outbox: { count: outbox.count, isMinimum: outbox.isMinimum, oldest: isoOf(outbox.oldest) },
    storage: storage ? { ...storage, measured: isoOf(storage.measured) } : null,
    limits: {
      pod: limits.pod,
      since: limits.since.toISOString(),
      refused: limits.refused.map((one) => ({ ...one, last: one.last.toISOString() })),
    },
  };
}
