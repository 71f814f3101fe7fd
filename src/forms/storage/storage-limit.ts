// Limits how much one tenant may occupy in Postgres, so that no tenant can fill the disk of all others (decision 0089).
// The figure of a tenant is its last measurement, plus what this process has written since then.
import { LRUCache } from 'lru-cache';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { within } from '../../service/time-limit.ts';
import { formOverhead, leftByOperation } from './store.ts';
import { type Measured, newUsage, type Usage, updateUsage } from './usage.ts';

export interface StorageLimit {
  /** Rejects with Problem `storage-full` if the tenant has reached the limit, so that no form may be created. */
  requireRoom(tenantId: string): Promise<void>;
  /** Rejects with Problem `storage-full` if the tenant has used the reserve of the limit as well. */
  requireReserve(tenantId: string): Promise<void>;
  /** A guard that refuses saves with {@link requireReserve}. */
  roomForSave: Guard;
  /** Counts a form that was created with form data of this length. */
  created(tenantId: string, length: number): void;
  /**
   * Counts a save that sent form data and files of this length. Until the next measurement, a save counts as if it had
   * replaced nothing, and a character as one byte.
   */
  saved(tenantId: string, length: number): void;
  /** Counts what a deletion, or a submission and a return, leaves in other tables, such as the outbox. */
  leftRows(tenantId: string): void;
}

export type Refused = 'create' | 'save';

/** Applicants may go on with their drafts until the tenant has stored this many times the limit. */
const reserve = 1.25;
/**
 * Tenants that stored nothing here for this number of milliseconds are forgotten. If they store something again, their
 * measurement is read again.
 */
const remembered = { max: 10_000, ttl: 600_000 };
/**
 * Maximum number of milliseconds for which a request waits until the measurement of its tenant is read for the first
 * time. Then it is not refused: the limit must not fail requests because the database is slow.
 */
const longestFirstRead = 1_000;

export interface StorageLimitOptions {
  /** Bytes (TENANT_STORAGE_LIMIT). */
  limit: number;
  /** Reads the measurement of a tenant. Undefined if there is none. */
  read(tenantId: string): Promise<Measured | undefined>;
  /**
   * Called for each refusal. A repeated creation counts too, although its caller then gets the stored first response.
   */
  onRefused(request: Refused): void;
}

/**
 * Also returns the tenants that stored something here recently, for the measurements, and a function that adds a tenant
 * to them.
 */
export function createStorageLimit({ limit, read, onRefused }: StorageLimitOptions) {
  const usages = new LRUCache<string, Usage>({ ...remembered, updateAgeOnGet: true });

  function usageOf(tenantId: string): Usage {
    const known = usages.get(tenantId);
    if (known) return known;
    const usage = newUsage();
    usages.set(tenantId, usage);
    return usage;
  }

  async function readFirst(tenantId: string, usage: Usage): Promise<void> {
    try {
      const found = await read(tenantId);
      // In the meantime, the background measurements may have read a newer figure.
      if (found && !usage.measured && !usage.walkBegan) updateUsage(usage, found);
      usage.isRead = true;
    } catch {
      // The next request tries again. The measurements in the background log that the database fails.
      usage.firstRead = undefined;
    }
  }

  async function requireUnder(tenantId: string, request: Refused, most: number): Promise<void> {
    const usage = usageOf(tenantId);
    // A new pod knows no tenant yet. Without this read, the limit would not hold there for the first seconds.
    if (!usage.isRead) {
      usage.firstRead ??= readFirst(tenantId, usage);
      await within(usage.firstRead, longestFirstRead, undefined);
    }
    if (usage.used < most) return;
    onRefused(request);
    throw new Problem(
      'storage-full',
      `The tenant’s forms, and what deleted ones left behind, occupy ${most} bytes or more.`,
    );
  }

  function wrote(tenantId: string, bytes: number): void {
    const usage = usageOf(tenantId);
    usage.since += bytes;
    usage.used += bytes;
  }

  const requireReserve = (tenantId: string) => requireUnder(tenantId, 'save', limit * reserve);
  const storage: StorageLimit = {
    requireRoom: (tenantId) => requireUnder(tenantId, 'create', limit),
    requireReserve,
    roomForSave: { name: 'roomForSave', check: (_request, response) => requireReserve(tenantOf(response).id) },
    created: (tenantId, length) => wrote(tenantId, length + formOverhead),
    saved: wrote,
    leftRows: (tenantId) => wrote(tenantId, leftByOperation),
  };
  return { storage, usages, usageOf };
}
