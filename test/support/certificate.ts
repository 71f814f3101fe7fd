// Creates certificates with OpenSSL.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TestCertificate {
  keyFile: string;
  certificateFile: string;
  /** `key` and `certificate` are in PEM. */
  key: string;
  certificate: string;
}

/**
 * Writes a key and a self-signed certificate to a folder. The certificate is for `host`; without `host`, it is for
 * localhost and 127.0.0.1.
 */
export function createCertificate(folder: string, { days = 1, host = '' } = {}): TestCertificate {
  const names = host === '' ? 'DNS:localhost,IP:127.0.0.1' : `DNS:${host}`;
  const [keyFile, certificateFile] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const args = [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', String(days)],
    ...['-subj', '/CN=test', '-addext', `subjectAltName=${names}`],
    ...['-keyout', keyFile, '-out', certificateFile],
  ];
  execFileSync('openssl', args, { stdio: 'ignore' });
  const [key, certificate] = [readFileSync(keyFile, 'utf8'), readFileSync(certificateFile, 'utf8')];
  return { keyFile, certificateFile, key, certificate };
}
