// Checks that the key ring of the token handler decrypts the stored secrets of clients. Compares more than the names of
// keys: another key may have the same name, for example after the key ring was lost and another one was generated.
import type pg from 'pg';
import { createKeyRing, KeyRingError } from '../../service/keys/key-ring.ts';
import { secretContext, tokenContext } from '../../token-handler/clients/registration.ts';
import type { Finding } from './finding.ts';

interface Sample {
  /** The name of the key that encrypted the secret. An encrypted secret begins with this name. */
  key: string;
  sealed: string;
  isToken: boolean;
  tenantId: string;
  oidcClientId: string;
}

/** Selects at most ten secrets for each key, so that a damaged one is not taken for a wrong key. */
const samplesSql = `
SELECT * FROM (
  SELECT *, row_number() OVER (PARTITION BY key ORDER BY random()) AS nth FROM (
    SELECT split_part(sealed, '.', 1) AS key, * FROM (
      SELECT client_secret AS sealed, false AS "isToken", tenant_id AS "tenantId", oidc_client_id AS "oidcClientId"
        FROM client_registrations
      UNION ALL SELECT registration_access_token, true, tenant_id, oidc_client_id FROM client_registrations
      UNION ALL SELECT registration_access_token, true, tenant_id, oidc_client_id FROM client_deletions
    ) AS secrets
  ) AS named
) AS numbered WHERE nth <= 10 ORDER BY key`;

/**
 * Checks that the key ring has every key that encrypts a client secret or management token. Without the key, people
 * cannot sign in to the client, or the token handler cannot change or delete it at the identity provider.
 */
export async function checkKeyRing(client: pg.Client, keyRing: string): Promise<Finding[]> {
  const ring = createKeyRing(keyRing);
  const opens = (sample: Sample) => {
    try {
      ring.open(sample.sealed, sample.isToken ? tokenContext(sample) : secretContext(sample));
      return true;
    } catch (error) {
      if (error instanceof KeyRingError) return false;
      throw error;
    }
  };
  const { rows } = await client.query<Sample>(samplesSql);
  const samples = [...Map.groupBy(rows, ({ key }) => key)];
  const failed = samples.filter(([, ofKey]) => ofKey.filter(opens).length < ofKey.length / 2);
  const known = new Set(keyRing.split(',').map((key) => key.trim().split(':')[0]));
  return failed.map(([key]) => {
    const name = JSON.stringify(key);
    const problem = known.has(key)
      ? `has a key ${name}, but stored registrations are encrypted with another key of this name`
      : `lacks the key ${name}, with which stored registrations are encrypted`;
    return { severity: 'error', name: 'KEY_RING', problem };
  });
}
