// Computes the dates on which the reconciler will lock and delete forms that nobody opens in the meantime.
import { type Clock, later } from '../../service/clock.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { DefinitionSource } from '../definitions/source.ts';
import { expiringStatuses } from '../forms/catalogue.ts';
import type { Form } from '../forms/form.ts';
import type { Policy, Retention } from './expiry.ts';
import { type DefinitionKey, policyOf } from './retention.ts';
import { readRetention } from './run-store.ts';

export interface ExpiryDates {
  lockOn: Date | null;
  deleteOn: Date | null;
}

/**
 * Returns the dates of each form, in the order of the forms. The reconciler may lock or delete a form some hours after
 * its date.
 */
export type ReadExpiryDates = (forms: readonly Form[]) => Promise<ExpiryDates[]>;

export interface ExpiryDatesOptions {
  db: Queryable;
  definitions: DefinitionSource;
  clock: Clock;
}

const day = 86_400_000;
/** The default periods until the first run of the reconciler. Each run records the configured defaults. */
const initial: Retention = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 15 * day };
/** Milliseconds for which the default periods are cached. They change only when an operator changes the settings. */
const freshFor = 60_000;
const never: ExpiryDates = { lockOn: null, deleteOn: null };

/**
 * Returns how long a definition's forms are kept. Returns undefined if the definition cannot be used. The forms of such
 * a definition do not expire.
 */
export type FindPolicy = (key: DefinitionKey) => Promise<Policy | undefined>;

export function createFindPolicy({ db, definitions, clock }: ExpiryDatesOptions): FindPolicy {
  let defaults = { read: Number.NEGATIVE_INFINITY, retention: Promise.resolve(initial) };

  function defaultRetention(): Promise<Retention> {
    const now = clock().getTime();
    if (Math.abs(now - defaults.read) < freshFor) return defaults.retention;
    const retention = readRetention(db).then((found) => found ?? initial);
    defaults = { read: now, retention };
    retention.catch(() => {
      defaults.read = Number.NEGATIVE_INFINITY;
    });
    return retention;
  }

  return async ({ tenantId, definitionId }) => {
    const read = definitions.find(tenantId, definitionId, { permission: false });
    const [own, definition] = await Promise.all([defaultRetention(), read.catch(() => 'unusable' as const)]);
    if (definition === 'unusable') return undefined;
    return policyOf({ tenantId, definitionId }, definition?.retention ?? {}, own);
  };
}

export function createExpiryDates(findPolicy: FindPolicy): ReadExpiryDates {
  const retentionOf = async (form: Form) => (await findPolicy(form))?.retention;
  return async (forms) => {
    const byDefinition = new Map<string, Promise<Retention | undefined>>();
    for (const form of forms)
      if (canExpire(form) && !byDefinition.has(form.definitionId))
        byDefinition.set(form.definitionId, retentionOf(form));
    return Promise.all(
      forms.map(async (form) => {
        const retention = canExpire(form) ? await byDefinition.get(form.definitionId) : undefined;
        return retention ? datesOf(form, retention) : never;
      }),
    );
  };
}

const canExpire = ({ held, status }: Form) => !held && expiringStatuses.some((one) => one === status);

function datesOf({ status, lastAccessed, locked }: Form, { lockAfter, deleteAfter }: Retention): ExpiryDates {
  const lockOn = later(lastAccessed, lockAfter);
  if (status === 'Draft') return { lockOn, deleteOn: later(lockOn, deleteAfter) };
  return { lockOn: null, deleteOn: locked && later(locked, deleteAfter) };
}
