// Records when each key of the key ring was first seen, and counts the stored secrets that are not encrypted with the
// current key. Stores the names of keys, never the keys.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import type { KeyRing } from '../../service/keys/key-ring.ts';
import type { KeyRingReading } from '../../service/keys/key-ring-metrics.ts';
import { createShortCache } from '../../service/short-cache.ts';

export interface KeyRingStoreOptions {
  pool: pg.Pool;
  keys: Pick<KeyRing, 'currentKey'>;
  clock: Clock;
}

/** Milliseconds for which the result of `read` is cached. */
const freshFor = 60_000;

export function createKeyRingStore({ pool, keys, clock }: KeyRingStoreOptions) {
  const { currentKey } = keys;
  const read = async (): Promise<{ firstSeen: Date; oldSecrets: number }> => {
    const { rows } = await pool.query(readSql, [currentKey, `${currentKey}.`]);
    if (!rows[0]) throw new Error('the current key was not recorded yet');
    return rows[0];
  };
  const cached = createShortCache({ freshFor, most: 1, clock, read });
  return {
    /** Records when the current key was first seen. Does nothing if a pod has already recorded the key. */
    async note(): Promise<void> {
      const sql = 'INSERT INTO key_ring_keys (name, first_seen) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING';
      await pool.query(sql, [currentKey, clock()]);
    },
    /** Throws if the database cannot be read, or if `note` has not recorded the current key yet. */
    async read(): Promise<KeyRingReading> {
      const { firstSeen, oldSecrets } = await cached('');
      return { currentKeyAge: Math.max(0, (clock().getTime() - firstSeen.getTime()) / 1_000), oldSecrets };
    },
  };
}

const readSql = `
SELECT first_seen AS "firstSeen",
  (SELECT count(*)::int FROM client_registrations
   WHERE NOT starts_with(client_secret, $2) OR NOT starts_with(registration_access_token, $2))
  + (SELECT count(*)::int FROM client_deletions WHERE NOT starts_with(registration_access_token, $2)) AS "oldSecrets"
FROM key_ring_keys WHERE name = $1`;
