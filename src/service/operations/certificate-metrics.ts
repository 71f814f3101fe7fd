// Exports the expiry of certificates: of authorities that the process trusts because of its settings, and of servers.
import { X509Certificate } from 'node:crypto';
import prom from 'prom-client';
import { type Clock, systemClock } from '../clock.ts';

/**
 * The value of the label `certificate`. Names that end in `-ca` stand for authorities that the process trusts, and the
 * other names for servers.
 */
export const certificateNames = [
  'extra-ca',
  'postgres-ca',
  'redis-ca',
  'identity-provider',
  'postgres',
  'redis',
] as const;
export type CertificateName = (typeof certificateNames)[number];

export interface Certificates {
  /** Records the certificate that a server has presented. `valid_to` is a text such as `Jan 1 00:00:00 2030 GMT`. */
  recordServer(name: CertificateName, certificate: { valid_to?: string } | undefined): void;
  /**
   * Records the expiry of one certificate in a PEM text: of those that have not expired, the one that expires first. If
   * all have expired, the one that expired last. Ignores a text without a certificate.
   */
  recordAuthorities(name: CertificateName, pem: string): void;
}

export interface CertificateMetricsOptions {
  registry: prom.Registry;
  clock?: Clock;
}

export function createCertificateMetrics({ registry, clock = systemClock }: CertificateMetricsOptions): Certificates {
  const gauge = new prom.Gauge<'certificate'>({
    name: 'formgate_certificate_expiry_timestamp_seconds',
    help: 'Expiry time of certificates: of servers (identity-provider, postgres, redis), and of the trusted authorities that a setting names (extra-ca, postgres-ca, redis-ca). For a file with several certificates, the earliest expiry that is still to come',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      const now = clock().getTime();
      for (const [name, expiries] of bundles) note(name, nextOf(expiries, now));
    },
  });
  const bundles = new Map<CertificateName, number[]>();
  const note = (certificate: CertificateName, milliseconds: number) => {
    if (Number.isFinite(milliseconds)) gauge.set({ certificate }, milliseconds / 1_000);
  };
  return {
    recordServer: (name, certificate) => note(name, Date.parse(certificate?.valid_to ?? '')),
    recordAuthorities: (name, pem) => void bundles.set(name, expiriesIn(pem)),
  };
}

/** Returns the earliest expiry after `now`; the last one if all are before it. */
function nextOf(expiries: number[], now: number): number {
  const coming = expiries.filter((expiry) => expiry > now);
  return coming.length > 0 ? Math.min(...coming) : Math.max(...expiries);
}

const block = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g;

/**
 * Returns the expiry times of the certificates in a PEM text, in milliseconds since 1970. Skips invalid certificates,
 * because the code that uses the file reports them.
 */
function expiriesIn(pem: string): number[] {
  return [...pem.matchAll(block)].flatMap(([text]) => {
    try {
      return [Date.parse(new X509Certificate(text).validTo)];
    } catch {
      return [];
    }
  });
}
