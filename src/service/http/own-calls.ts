// Recognises the calls that a process makes to itself. The intake application calls the form service of its own
// process, and passes on the address of the applicant and the request id. These must not depend on TRUSTED_PROXIES,
// which lists the proxies in front of the service.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isSameText } from '../same-text.ts';

const name = 'x-formgate-own-call';
/** Only this process knows the value, so a client or sidecar that connects from the same machine cannot send it. */
const value = randomBytes(32).toString('base64url');

/** The header of a call of this process to itself. */
export const ownCallHeaders: Readonly<Record<string, string>> = { [name]: value };

export function isOwnCall({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const given = headers[name];
  return typeof given === 'string' && isSameText(value, given);
}
