// What this process knows about the storage of a tenant: the last measurement, plus what it has written since then.
import type { TenantStorage } from './store.ts';

export interface Usage extends Pick<TenantStorage, 'measured' | 'walkBegan'> {
  /** Bytes that the last measurement found, and those written here since then. */
  used: number;
  /** Bytes written here after the last complete walk began, but before the walk in progress began. */
  before: number;
  /** Bytes written here after that. */
  since: number;
  /** The first read of the tenant's measurement. Undefined before it began, and after it has failed. */
  firstRead?: Promise<void> | undefined;
  /** True after the first read has succeeded. */
  isRead: boolean;
}

export type Measured = Omit<TenantStorage, 'tenantId'>;

export const newUsage = (): Usage => ({ used: 0, measured: null, walkBegan: null, before: 0, since: 0, isRead: false });

/**
 * Records a new measurement. A complete walk has seen what was written before it began, but perhaps not what was
 * written later.
 */
export function updateUsage(usage: Usage, { bytes, measured, walkBegan }: Measured): void {
  if (measured?.getTime() !== usage.measured?.getTime()) {
    usage.before = 0;
    // The walk began and ended between two reads.
    if (measured?.getTime() !== usage.walkBegan?.getTime()) usage.since = 0;
  }
  if (walkBegan && walkBegan.getTime() !== usage.walkBegan?.getTime()) beginWalk(usage, walkBegan);
  Object.assign(usage, { used: bytes + usage.before + usage.since, measured, walkBegan });
}

/** Records that a walk begins, which may miss what is written from now on. */
export function beginWalk(usage: Usage, now: Date): void {
  usage.walkBegan = now;
  usage.before += usage.since;
  usage.since = 0;
}
