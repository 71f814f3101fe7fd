// Ends sessions that the identity provider has ended (OpenID Connect Back-Channel Logout 1.0). Remembers each logout
// for ten minutes, so that a sign-in that was in progress at the logout opens no session. This module does not verify
// logout tokens; `logout-token.ts` does.
import { hash } from 'node:crypto';
import { idTokenAlgorithms } from '../../service/auth/signing-keys.ts';
import type { Clock } from '../../service/clock.ts';
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { FoundSession, Session } from '../sessions/session.ts';
import type { Sessions } from '../sessions/sessions.ts';

export interface ProviderLogout {
  jti: string;
  /** URN of the tenant. */
  tenantId: string;
  clientId: string;
  /** Session id at the identity provider. If it is absent, all sessions of the person end. */
  sid?: string | undefined;
  /** Subject of the person. If it is absent, `sid` is set. */
  sub?: string | undefined;
  /** Algorithm of the logout token's signature. */
  algorithm: string;
}

export type ProviderLogouts = ReturnType<typeof createProviderLogouts>;

/**
 * Milliseconds for which a logout is remembered. This is longer than it takes to open a session, and longer than a
 * logout token is accepted.
 */
const memory = 600_000;

export function createProviderLogouts(options: { sessions: Sessions; clock: Clock; log: Logger }) {
  const { sessions, clock, log } = options;
  const { marks } = sessions;
  /**
   * True if the client's ID tokens are signed with the algorithm of this logout token, as Back-Channel Logout 1.0,
   * section 2.4, requires. Also true while the algorithm of the client's ID tokens is unknown. If the identity provider
   * changes the algorithm, logouts are refused until the next sign-in. A session that such a logout names stays open in
   * the token handler until its next token refresh.
   */
  const isUsual = async (logout: ProviderLogout) => {
    const times = await Promise.all(idTokenAlgorithms.map((name) => marks.value(algorithmMark(logout, name))));
    const known = idTokenAlgorithms.filter((_, index) => times[index] !== undefined);
    return known.length === 0 || known.includes(logout.algorithm);
  };
  /** Ends a session, and writes its audit event if it was live. */
  async function endSession({ session }: FoundSession): Promise<boolean> {
    const wasLive = await sessions.end(session);
    const { handle: id, tenantId: tenant } = session;
    const audit = serviceEvent({ action: 'session.provider-logout', by: 'identity-provider', tenant, id });
    if (wasLive) auditLog(log).info({ session: id, audit }, 'session ended by the identity provider');
    return wasLive;
  }
  return {
    /**
     * Ends the sessions that the logout names. Returns how many of them were live. Returns `used` if the token was used
     * before, and `other algorithm` if the identity provider signs this client's ID tokens with another algorithm.
     */
    async end(logout: ProviderLogout): Promise<number | 'used' | 'other algorithm'> {
      // Rejects a token whose `jti` was recently used (Back-Channel Logout 1.0, section 2.6, step 9).
      if ((await marks.value(tokenMark(logout))) !== undefined) return 'used';
      if (!(await isUsual(logout))) return 'other algorithm';
      // Sets this mark before `findSessions`. A concurrent sign-in therefore either sees the mark, or has already
      // stored its session, which `findSessions` then finds.
      await marks.raise(endMark(logout), await marks.time(), memory);
      let ended = 0;
      for await (const found of findSessions(sessions, logout)) {
        const outcomes = await Promise.all(found.map(endSession));
        ended += outcomes.filter((wasLive) => wasLive).length;
      }
      // Marks the token as used only at the end, so that the identity provider can repeat a logout that has failed.
      await marks.raise(tokenMark(logout), 1, memory);
      return ended;
    },
    /** Remembers the algorithm of an ID token for as long as the session may last. */
    keepAlgorithm: (session: Session, algorithm: string) =>
      marks.raise(algorithmMark(session, algorithm), clock().getTime(), sessions.limits.maxAge),
    /** Returns the time for `since` of `hasEnded`. Logouts are recorded with times of the same clock. */
    time: () => marks.time(),
    /**
     * True if a logout after `since` named this session. `since` is the `time` at which the token handler began to
     * redeem the code. An earlier logout must have named another session, because the identity provider redeems no
     * code of a session that has ended.
     */
    async hasEnded({ tenantId, clientId, sid, user }: Session, since: number): Promise<boolean> {
      const sub = user.id;
      const names = [endMark({ tenantId, clientId, sub }), endMark({ tenantId, clientId, sub, sid })];
      const values = await Promise.all(names.map((name) => marks.value(name)));
      return values.some((endedAt) => endedAt !== undefined && endedAt >= since);
    },
  };
}

/** Returns the sessions in pages. Those of a person are one page, because each person has few sessions. */
async function* findSessions(sessions: Sessions, logout: ProviderLogout): AsyncGenerator<FoundSession[], void> {
  const { tenantId, clientId, sid, sub } = logout;
  const pages =
    sid === undefined
      ? [await sessions.ofUser(tenantId, sub ?? '', 'all')]
      : sessions.ofProviderSession({ tenantId, clientId }, sid);
  for await (const page of pages)
    yield page.filter(({ session }) => session.clientId === clientId && (sub === undefined || session.user.id === sub));
}

/** A logout with a `sid` ends only the session with that `sid`, even if the logout also has a `sub`. */
function endMark({ tenantId, clientId, sid, sub = '' }: Omit<ProviderLogout, 'jti' | 'algorithm'>): string {
  return `ended:${digest(tenantId, clientId, ...(sid === undefined ? ['sub', sub] : ['sid', sid]))}`;
}

const algorithmMark = ({ tenantId, clientId }: Pick<Session, 'tenantId' | 'clientId'>, algorithm: string) =>
  `algorithm:${digest(tenantId, clientId, algorithm)}`;

const tokenMark = ({ tenantId, jti }: ProviderLogout) => `jti:${digest(tenantId, jti)}`;

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\n'), 'base64url');
}
