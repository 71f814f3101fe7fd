// Classifies the errors of commands.
import { ClientClosedError, ClientOfflineError, ErrorReply } from '@redis/client';

/**
 * True if the error is a bug in the caller's command, not an outage. Redis 6 reports an outage during a script as
 * `ERR Error running script (…): … -READONLY …`; Redis 7 reports it as `READONLY …`.
 */
export function isDefect(error: unknown): boolean {
  if (!(error instanceof ErrorReply) || !/^(ERR|WRONGTYPE|CROSSSLOT) /.test(error.message)) return false;
  return !/^ERR Error running script .* -(READONLY|OOM|MISCONF|NOREPLICAS) /.test(error.message);
}

/** True if Redis has refused the command, or if the client had no connection over which it could send the command. */
export function isRefused(error: unknown): boolean {
  return error instanceof ErrorReply || error instanceof ClientOfflineError || error instanceof ClientClosedError;
}
