// Explains to an operator why a database cannot be used at startup. The explanation never repeats messages of Postgres,
// because they quote values.
import { codeOfError } from '../error-code.ts';

const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the name of its host is not known',
  EAI_AGAIN: 'the name of its host cannot be looked up at the moment',
  ECONNREFUSED: 'its host refuses connections',
  ECONNRESET: 'the connection broke',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
  ETIMEDOUT: 'its host does not respond',
  // Codes of Postgres: https://www.postgresql.org/docs/current/errcodes-appendix.html
  '28P01': 'it refuses the user or the password',
  '28000': 'it does not admit this user',
  '3D000': 'there is no database of this name',
  '42501': 'the role lacks a privilege that a migration needs',
  '53100': 'its disk is full',
  '53300': 'it has no free connection',
  '55P03': 'another session holds a lock that a migration needs',
  '57014': 'a statement took too long',
  '57P01': 'it was shut down',
  '57P03': 'it is starting or stopping',
};

/** Codes of failures that may be temporary. After any other failure, waiting does not help. */
const outages = new Set(
  'ENOTFOUND EAI_AGAIN ECONNREFUSED ECONNRESET EHOSTUNREACH ENETUNREACH ETIMEDOUT EPIPE 53300 57P01 57P02 57P03'.split(
    ' ',
  ),
);

/** True if the database cannot be reached now, but no setting is certainly wrong. */
export function isDatabaseOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOfError(error);
  if (code !== undefined) return outages.has(code);
  // pg gives these errors no code.
  return error.message === 'timeout expired' || error.message.startsWith('Connection terminated');
}

const noTls = 'The server does not support SSL connections';
/** Reasons for errors of pg that have no code, keyed by the error's message. */
const messages: Readonly<Record<string, string>> = {
  'timeout expired': 'its host does not respond',
  [noTls]: 'it offers no TLS',
};

/**
 * Codes of OpenSSL for a certificate that is not accepted
 * (https://nodejs.org/api/tls.html#x509-certificate-error-codes).
 */
const certificateCodes =
  /^(?:ERR_TLS_CERT_|(?:ERROR_IN_)?(?:CERT|CRL)_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)/;
const tlsCodes = /^(?:EPROTO$|ERR_TLS_|ERR_SSL_)/;
const tlsMessages = new Set([noTls, 'There was an error establishing an SSL connection']);

/**
 * True if TLS failed before the connection was established: because of the certificate, the handshake, or a server
 * without TLS.
 */
export function isTlsFailure(error: Error): boolean {
  const code = codeOfError(error);
  if (code === undefined) return tlsMessages.has(error.message);
  return certificateCodes.test(code) || tlsCodes.test(code);
}

/**
 * Returns a clause with the reason and the code of the failure, such as `it refuses the user or the password (28P01)`.
 */
export function explainDatabaseFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'for an unknown reason';
  const code = codeOfError(error);
  // The error comes from Formgate or the migration tool, or from pg without a code.
  if (code === undefined) return messages[error.message] ?? error.message;
  return `${reasons[code] ?? otherReason(error, code)} (${code})`;
}

function otherReason(error: Error, code: string): string {
  if (certificateCodes.test(code)) return 'its certificate is not accepted';
  return isTlsFailure(error) ? 'TLS fails' : 'it rejected a statement';
}
