// Measures the storage of the tenants whose forms this process creates or saves, and of those near their limit. Every
// pod runs this background job. A tenant is measured again after it has written a hundredth of its limit here, each
// minute if it is near its limit, and after an hour in any case.
import type pg from 'pg';
import { startBackgroundLoop } from '../../service/background-loop.ts';
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { Backoff } from '../../service/retry.ts';
import { createStorageLimit, type StorageLimit } from './storage-limit.ts';
import { createStorageMetrics } from './storage-metrics.ts';
import {
  createStorageStore,
  createWalk,
  mostAhead,
  nearShare,
  type StorageStore,
  type TenantStorage,
  type Walk,
} from './store.ts';
import { beginWalk, type Usage, updateUsage } from './usage.ts';

export interface MeasurementOptions {
  /** Bytes (TENANT_STORAGE_LIMIT). */
  limit: number;
  store: Pick<StorageStore, 'read' | 'add' | 'heavy'>;
  walk: Walk;
  /** The tenants to measure, by id. */
  usages: { keys(): Iterable<string>; peek(tenantId: string): Usage | undefined };
  /** Adds a tenant to them. */
  usageOf(tenantId: string): Usage;
  clock: Clock;
  log: Logger;
  pace?: Partial<MeasurementPace> | undefined;
}

/** The size of the batches and the times of the measurements. All times are in milliseconds. */
export interface MeasurementPace {
  /** Maximum number of forms in a batch. */
  batch: number;
  /** Time between two reads of the measurements while no walk is in progress. */
  interval: number;
  /** Time between two walks over a tenant that has written much. */
  often: number;
  /** Time between two walks over a tenant that is near its limit, so that deletions soon make room. */
  near: number;
  /** Time between two walks over any other tenant. */
  seldom: number;
  retry: Backoff;
}

const minute = 60_000;
const defaultPace: MeasurementPace = {
  batch: 1_000,
  interval: 5_000,
  often: 10_000,
  near: minute,
  seldom: 60 * minute,
  retry: { first: 1_000, cap: minute },
};
/** A tenant that has written this share of its limit here since its last measurement is measured again. */
const writtenShare = 0.01;
/** The pause after a batch is its duration times this number, so that walks take little of the database's time. */
const restFactor = 10;
const longestRest = 30_000;

type State = 'free' | 'near' | 'full';

const messages: Record<State, string> = {
  free: 'the forms of the tenant are no longer near their storage limit',
  near: 'the forms of the tenant are near their storage limit',
  full: 'the forms of the tenant have reached their storage limit: new forms are refused',
};

function stateOf(usage: Usage, limit: number): State {
  const share = usage.used / limit;
  return share < nearShare ? 'free' : share < 1 ? 'near' : 'full';
}

export function startMeasurements(options: MeasurementOptions): { stop(): Promise<void> } {
  const { store, usages, usageOf, clock, log, limit } = options;
  const pace = { ...defaultPace, ...options.pace };
  const states = new WeakMap<Usage, State>();

  function logState(tenantId: string, usage: Usage): void {
    const state = stateOf(usage, limit);
    if (state === (states.get(usage) ?? 'free')) return;
    states.set(usage, state);
    log[state === 'free' ? 'info' : 'warn']({ tenant: tenantId, bytes: usage.used, limit }, messages[state]);
  }

  /** Returns the time at or before which a walk must have begun for the next one to be due. */
  function dueBefore(usage: Usage): Date {
    const seldom = stateOf(usage, limit) === 'free' ? pace.seldom : pace.near;
    const hasWrittenMuch = usage.before + usage.since >= limit * writtenShare;
    return new Date(clock().getTime() - (hasWrittenMuch ? pace.often : seldom));
  }

  function isDue(usage: Usage): boolean {
    const { walkBegan, measured } = usage;
    if (walkBegan || !measured || measured <= dueBefore(usage)) return true;
    return measured.getTime() > clock().getTime() + mostAhead;
  }

  /** Reads the measurements. Returns the tenants that have to be measured now. */
  async function readDue(): Promise<[string, Usage][]> {
    const due: [string, Usage][] = [];
    // These tenants are measured even if they write nothing, so that their deletions end the alert.
    for (const tenantId of await store.heavy(limit * nearShare)) usageOf(tenantId);
    for (const { tenantId, ...read } of await readAll(store, [...usages.keys()])) {
      const usage = usages.peek(tenantId);
      if (!usage) continue;
      updateUsage(usage, read);
      logState(tenantId, usage);
      if (isDue(usage)) due.push([tenantId, usage]);
    }
    return due;
  }

  let turn = 0;

  /** Walks over one batch of one tenant, so that a tenant with many forms does not delay the others. */
  async function walkOn(): Promise<number> {
    const began = performance.now();
    const due = await readDue();
    const [tenantId, usage] = due[turn++ % due.length] ?? [];
    if (tenantId === undefined || !usage) return pace.interval;
    const now = clock();
    if (!usage.walkBegan) beginWalk(usage, now);
    await options.walk({ tenantId, now, limit: pace.batch, dueBefore: dueBefore(usage) });
    return Math.min((performance.now() - began) * restFactor, longestRest);
  }

  return startBackgroundLoop({
    work: walkOn,
    backoff: pace.retry,
    onFailure: (err, retryInMs) => log.warn({ err, retryInMs }, 'storage of tenants not measured'),
  });
}

/** Reads the measurements of the tenants, after it has added those that are new. */
async function readAll(store: Pick<StorageStore, 'read' | 'add'>, tenantIds: string[]): Promise<TenantStorage[]> {
  if (tenantIds.length === 0) return [];
  const found = await store.read(tenantIds);
  if (found.length === tenantIds.length) return found;
  await store.add(tenantIds);
  return store.read(tenantIds);
}

export interface TenantStorageOptions extends Pick<MeasurementOptions, 'limit' | 'clock' | 'log'> {
  /** A pool that requests do not use, so that requests do not wait for the measurements. */
  pool: pg.Pool;
  metrics: Pick<Metrics, 'registry'>;
}

/** Creates the limit of the tenants' storage, and starts the measurements for it. */
export function startTenantStorage(options: TenantStorageOptions): StorageLimit & { stop(): Promise<void> } {
  const { limit, pool, metrics, clock, log } = options;
  const store = createStorageStore(pool);
  const onRefused = createStorageMetrics({ ...metrics, store, limit });
  const read = async (tenantId: string) => (await store.read([tenantId]))[0];
  const { storage, ...known } = createStorageLimit({ limit, read, onRefused });
  return { ...storage, ...startMeasurements({ limit, store, walk: createWalk(pool), ...known, clock, log }) };
}
