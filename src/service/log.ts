// JSON log lines. Only what a caller passes is logged, so nothing here may be handed a token, cookie, code, address or
// answer; the redaction below is the second line of defence, not the first.
import pino from 'pino';

export type Logger = pino.Logger;

const secretKeys = ['authorization', 'cookie', 'password', 'client_secret', 'token', 'access_token', 'refresh_token', 'code'];

export function createLogger(options: {
  name: string;
  level: string;
  destination?: pino.DestinationStream | undefined;
}): Logger {
  return pino(
    {
      name: options.name,
      level: options.level,
      base: { name: options.name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretKeys.flatMap((key) => [key, `*.${key}`]), censor: '[redacted]' },
      serializers: { err: describeError },
    },
    options.destination ?? pino.destination({ sync: false }),
  );
}

interface ErrorDescription {
  type: string;
  message: string;
  code?: unknown;
  stack?: string;
  cause?: ErrorDescription;
}

/**
 * What of an error may be logged. Library errors carry whole requests, queries and parameters as properties; only name,
 * message, code and stack are taken. Messages of database errors can quote a value (Postgres' DETAIL does, the message
 * of a bad JSON does), so theirs is replaced by the error code.
 */
export function describeError(error: unknown): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an Error' };
  const code = 'code' in error ? error.code : undefined;
  const fromDatabase = 'severity' in error && 'routine' in error;
  const message = fromDatabase ? `database error ${String(code)}` : error.message;
  return {
    type: error.name,
    message,
    ...(code !== undefined && { code }),
    ...(error.stack !== undefined && { stack: fromDatabase ? stackFrames(error.stack) : error.stack }),
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  };
}

function stackFrames(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n');
}
