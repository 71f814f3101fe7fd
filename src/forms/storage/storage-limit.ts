// Limits how much the forms of one tenant may occupy in Postgres, so that no tenant can fill the disk of all others
// (decision 0089). The figure of a tenant is its last measurement, plus what this process has written since then.
import { LRUCache } from 'lru-cache';
import type { Guard } from '../../service/http/http-app.ts';
import { Problem } from '../../service/http/problem.ts';
import { tenantOf } from '../../service/http/request-context.ts';
import { formOverhead, type TenantStorage } from './store.ts';

export interface StorageLimit {
  /** Throws Problem `storage-full` if the tenant's forms have reached the limit, so that no form may be created. */
  requireRoom(tenantId: string): void;
  /** A guard that refuses saves (`storage-full`) if the tenant's forms have used the reserve of the limit as well. */
  roomForSave: Guard;
  /** Counts a form that was created with form data of this length. */
  created(tenantId: string, length: number): void;
  /**
   * Counts a save that sent form data and files of this length. Until the next measurement, a save counts as if it had
   * replaced nothing, and a character as one byte.
   */
  saved(tenantId: string, length: number): void;
}

export type Refused = 'create' | 'save';

/** Applicants may go on with their drafts until the tenant has stored this many times the limit. */
const reserve = 1.25;
/**
 * Tenants that stored nothing here for this number of milliseconds are forgotten. If they store something again, they
 * are measured within seconds.
 */
const remembered = { max: 10_000, ttl: 600_000 };

/** What this process knows about the storage of a tenant. */
export interface Usage extends Pick<TenantStorage, 'measured' | 'walkBegan'> {
  /** Bytes that the last measurement found, and those written here since then. */
  used: number;
  /** Bytes written here after the last complete walk began, but before the walk in progress began. */
  before: number;
  /** Bytes written here after that. */
  since: number;
}

export interface StorageLimitOptions {
  /** Bytes (TENANT_STORAGE_LIMIT). */
  limit: number;
  /** Called for each refused request, even if a repeated creation then gets the first response. */
  onRefused(request: Refused): void;
}

/**
 * Also returns the tenants that stored something here recently, for the measurements, and a function that adds a tenant
 * to them.
 */
export function createStorageLimit({ limit, onRefused }: StorageLimitOptions) {
  const usages = new LRUCache<string, Usage>({ ...remembered, updateAgeOnGet: true });

  function usageOf(tenantId: string): Usage {
    const known = usages.get(tenantId);
    if (known) return known;
    const usage: Usage = { used: 0, measured: null, walkBegan: null, before: 0, since: 0 };
    usages.set(tenantId, usage);
    return usage;
  }

  function requireRoom(tenantId: string, request: Refused, most: number): void {
    if (usageOf(tenantId).used < most) return;
    onRefused(request);
    throw new Problem('storage-full', `The forms of the tenant occupy ${most} bytes or more.`);
  }

  function wrote(tenantId: string, bytes: number): void {
    const usage = usageOf(tenantId);
    usage.since += bytes;
    usage.used += bytes;
  }

  const storage: StorageLimit = {
    requireRoom: (tenantId) => requireRoom(tenantId, 'create', limit),
    roomForSave: {
      name: 'roomForSave',
      check: (_request, response) => requireRoom(tenantOf(response).id, 'save', limit * reserve),
    },
    created: (tenantId, length) => wrote(tenantId, length + formOverhead),
    saved: wrote,
  };
  return { storage, usages, usageOf };
}
