// Opens the session of a person who has just signed in, under a new session id. If the identity provider has logged the
// person out in the meantime, no session is opened.
import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import { decodeProtectedHeader } from 'jose';
import type { Tenant } from '../../service/auth/identity.ts';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Client } from '../clients/client.ts';
import type { Registration } from '../clients/registration.ts';
import type { ProviderLogouts } from '../logout/provider-logouts.ts';
import { handleOf, issueCsrfCookie } from '../sessions/cookies.ts';
import type { Landing } from '../sessions/records.ts';
import { claimsOf, type Session, type SessionLimits, type SessionUser, tokenSetOf } from '../sessions/session.ts';
import { noteSession } from '../sessions/session-audit.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { dropSession, renewSession, saveSession } from './browser-session.ts';
import type { Redeemed } from './relying-party.ts';

export interface SessionOpenerOptions {
  sessions: Sessions;
  providerLogouts: ProviderLogouts;
  clock: Clock;
  log: Logger;
}

export interface SignedIn {
  tenant: Tenant;
  client: Client;
  registration: Pick<Registration, 'oidcClientId' | 'issuer'>;
  callbackUrl: string;
  redeemed: Redeemed;
  /** The `time` of ProviderLogouts when the token handler began to redeem the code. */
  begun: number;
  /** The attempt, and the page to which the attempt's callback will redirect. */
  landing: Landing;
}

/** Maximum number of sign-ins for which the record of a session remembers the landing page. */
const mostLandings = 5;

export function createSessionOpener(options: SessionOpenerOptions) {
  const { sessions, providerLogouts, clock } = options;

  async function start(session: Session, { redeemed: { tokens }, begun }: SignedIn, now: number): Promise<void> {
    const { alg = '' } = decodeProtectedHeader(tokens.id_token ?? '');
    await providerLogouts.keepAlgorithm(session, alg);
    await sessions.start(session, tokenSetOf(tokens, now));
    if (await providerLogouts.hasEnded(session, begun))
      throw new Problem('unauthenticated', 'The identity provider has ended this sign-in. Sign in again.');
  }

  return async (signedIn: SignedIn, request: Request, response: Response): Promise<void> => {
    const before = request.session.signedIn;
    const { landings = [] } = request.session;
    await renewSession(request);
    if (before) await endFormer(before, options);
    const now = clock().getTime();
    const session = describeSession(signedIn, handleOf(request.sessionID), now, sessions.limits);
    request.session.signedIn = session;
    request.session.landings = [...landings, signedIn.landing].slice(-mostLandings);
    try {
      await saveSession(request);
      await start(session, signedIn, now);
    } catch (error) {
      dropSession(request);
      // If the store fails again, what it has stored is of no use without the cookie, and expires.
      await sessions.end(session).catch(() => undefined);
      throw error;
    }
    noteSession(response, session);
    issueCsrfCookie(response, session, request.secure);
  };
}

/**
 * Removes the tokens of the browser's former session, which has already ended, because `renewSession` deleted its
 * record. Writes the audit event of a session that was live.
 */
async function endFormer(former: Session, { sessions, log }: SessionOpenerOptions): Promise<void> {
  const { handle: id, tenantId: tenant } = former;
  try {
    if (!(await sessions.end(former))) return;
  } catch (error) {
    log.warn({ err: error, session: id }, 'former session not removed');
  }
  const audit = serviceEvent({ action: 'session.replaced', by: 'token-handler', tenant, id });
  auditLog(log).info({ session: id, audit }, 'session ended: its browser has signed in again');
}

function describeSession(
  { tenant, client, registration: { oidcClientId, issuer }, callbackUrl, redeemed }: SignedIn,
  handle: string,
  now: number,
  limits: SessionLimits,
): Session {
  const { claims, tokens } = redeemed;
  const accessClaims = claimsOf(tokens.access_token);
  const sid = textOf(claims.sid) ?? textOf(accessClaims.sid);
  return {
    handle,
    tenantId: tenant.id,
    tenantName: tenant.name,
    realm: tenant.realm,
    clientId: client.id,
    core: client.core,
    keycloakLogout: client.keycloakLogout,
    oidcClientId,
    issuer,
    user: describePerson(claims, accessClaims),
    site: new URL(callbackUrl).origin,
    callbackUrl,
    created: now,
    absoluteExpiry: now + limits.maxAge,
    csrfSecret: randomBytes(32).toString('base64url'),
    ...(sid !== undefined && { sid }),
  };
}

type Claims = Record<string, unknown>;

/**
 * Returns the person who has signed in. Claims of the verified ID token take precedence over claims of the access
 * token. `identity_provider` is a claim of Keycloak. The roles stay empty, because they are in the token set, which
 * each refresh may change.
 */
export function describePerson(idToken: Claims & { sub: string }, accessToken: Claims): SessionUser {
  const email = textOf(idToken.email) ?? textOf(accessToken.email);
  const authenticatedBy = textOf(idToken.identity_provider) ?? textOf(accessToken.identity_provider);
  return {
    id: idToken.sub,
    name: textOf(idToken.name) ?? textOf(idToken.preferred_username) ?? idToken.sub,
    ...(email !== undefined && { email }),
    roles: [],
    ...(authenticatedBy !== undefined && { authenticatedBy }),
  };
}

/** Returns the value if it is a non-empty string, otherwise undefined. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
