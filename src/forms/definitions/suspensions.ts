// Suspends what tenants wrote after it has exceeded its limits for three different subjects (forms, deliveries): for 60 s,
// then twice as long each time it does so again, an hour at most. A success forgives everything. It knows this process
// only, and a bounded number of keys.
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';

export interface Suspension {
  since: Date;
  until: Date;
}

export interface Suspensions {
  /** Undefined where the key is not suspended now. */
  find(key: string): Suspension | undefined;
  /** Counts a job that exceeded its limits; answers the suspension that it causes. */
  exceeded(key: string, subject: string): Suspension | undefined;
  succeeded(key: string): void;
}

interface Entry {
  subjects: Set<string>;
  lengthMs: number;
  suspension?: Suspension;
}

const allowedSubjects = 3;
const firstMs = 60_000;
const longestMs = 3_600_000;

export function createSuspensions(clock: Clock): Suspensions {
  const records = new LRUCache<string, Entry>({ max: 10_000 });
  return {
    find(key) {
      const suspension = records.get(key)?.suspension;
      return suspension && suspension.until > clock() ? suspension : undefined;
    },
    exceeded(key, subject) {
      const record = records.get(key) ?? { subjects: new Set(), lengthMs: firstMs };
      record.subjects.add(subject);
      records.set(key, record);
      if (record.subjects.size < allowedSubjects) return undefined;
      const since = clock();
      record.suspension = { since, until: new Date(since.getTime() + record.lengthMs) };
      record.lengthMs = Math.min(longestMs, record.lengthMs * 2);
      return record.suspension;
    },
    succeeded(key) {
      records.delete(key);
    },
  };
}
