// Reads the CA certificates that the process trusts because of its settings, so that their expiry can be exported.
// Skips a file that cannot be read, because the code that needs the file fails and reports why.
import { readFile } from 'node:fs/promises';
import type { Certificates } from './certificate-metrics.ts';

export interface TrustedCertificates {
  DATABASE_URL: string;
  /** CA certificates as PEM text. */
  REDIS_TLS_CA?: string | undefined;
}

/**
 * Records the expiry of the CA certificates. `extraCa` is the value of NODE_EXTRA_CA_CERTS: the path of a file that
 * Node read when the process started.
 */
export async function recordTrustedCertificates(
  certificates: Certificates,
  { DATABASE_URL, REDIS_TLS_CA }: TrustedCertificates,
  extraCa: string | undefined,
): Promise<void> {
  if (REDIS_TLS_CA !== undefined) certificates.recordAuthorities('redis-ca', REDIS_TLS_CA);
  const files = { 'extra-ca': extraCa, 'postgres-ca': new URL(DATABASE_URL).searchParams.get('sslrootcert') } as const;
  for (const name of ['extra-ca', 'postgres-ca'] as const) {
    const file = files[name];
    const pem = file ? await readFile(file, 'utf8').catch(() => '') : '';
    certificates.recordAuthorities(name, pem);
  }
}
