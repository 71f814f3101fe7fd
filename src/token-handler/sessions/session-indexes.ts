// Names the indexes that list sessions: by tenant, person, and session at the identity provider. The names are digests,
// so that a copy of the store does not reveal who is signed in.
import { hash } from 'node:crypto';
import type { Session } from './session.ts';

const digest = (...parts: string[]) => hash('sha256', parts.join('\n'), 'base64url');
export const tenantIndex = (tenantId: string) => `tenant:${digest(tenantId)}`;
export const userIndex = (tenantId: string, userId: string) => `user:${digest(tenantId, userId)}`;
export const providerIndex = (tenantId: string, clientId: string, sid: string) =>
  `sid:${digest(tenantId, clientId, sid)}`;

/** Returns the names of the indexes that list a session. */
export function indexesOf({ tenantId, clientId, user, sid }: Session): string[] {
  const indexes = [tenantIndex(tenantId), userIndex(tenantId, user.id)];
  return sid === undefined ? indexes : [...indexes, providerIndex(tenantId, clientId, sid)];
}

/**
 * Milliseconds for which the position of a removed entry is kept. A caller who has ended all sessions of a page can
 * then still read the next page.
 */
export const positionLife = 3_600_000;
