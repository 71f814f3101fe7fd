// Ends sessions that the identity provider has ended (OpenID Connect Back-Channel Logout 1.0). Remembers each logout for a
// while, for sign-ins that are about to finish. It does not verify logout tokens.
import { hash } from 'node:crypto';
import type { Clock } from '../../service/clock.ts';
import type { FoundSession, Session } from '../sessions/session.ts';
import type { Sessions } from '../sessions/sessions.ts';

export interface ProviderLogout {
  jti: string;
  /** URN */
  tenantId: string;
  clientId: string;
  /** The session at the identity provider; without it, all sessions of the person end. */
  sid?: string | undefined;
  /** Subject */
  sub?: string | undefined;
}

export type ProviderLogouts = ReturnType<typeof createProviderLogouts>;

/** Milliseconds that a logout is remembered: longer than the rest of a sign-in, and than a logout token is valid. */
const memory = 600_000;

export function createProviderLogouts(options: { sessions: Sessions; clock: Clock }) {
  const { sessions, clock } = options;
  const { marks } = sessions;
  return {
    /** Ends the sessions of this tenant and client that the logout names. Returns their number, or `used` for a used token. */
    async end(logout: ProviderLogout): Promise<number | 'used'> {
      // Section 2.6, step 9
      if ((await marks.value(tokenMark(logout))) !== undefined) return 'used';
      // First, so that a sign-in that finishes now either sees the mark, or has stored its session already.
      await marks.raise(endMark(logout), clock().getTime(), memory);
      const found = await findSessions(sessions, logout);
      const ended = await Promise.all(found.map(({ session }) => sessions.end(session)));
      // Last, so that a logout that failed can be sent again.
      await marks.raise(tokenMark(logout), 1, memory);
      return ended.filter((wasLive) => wasLive).length;
    },
    /**
     * Whether this session was logged out since redeeming its code began (`since`, milliseconds since 1970). An earlier
     * logout belongs to an earlier sign-in: the identity provider redeems no code of a session that it has ended.
     */
    async hasEnded({ tenantId, clientId, sid, user }: Session, since: number): Promise<boolean> {
      const sub = user.id;
      const names = [endMark({ tenantId, clientId, sub }), endMark({ tenantId, clientId, sub, sid })];
      const values = await Promise.all(names.map((name) => marks.value(name)));
      return values.some((endedAt) => endedAt !== undefined && endedAt >= since);
    },
  };
}

async function findSessions(sessions: Sessions, logout: ProviderLogout): Promise<FoundSession[]> {
  const { tenantId, clientId, sid, sub } = logout;
  const found =
    sid === undefined
      ? await sessions.ofUser(tenantId, sub ?? '', 'all')
      : await sessions.ofProviderSession({ tenantId, clientId }, sid);
  return found.filter(({ session }) => session.clientId === clientId && (sub === undefined || session.user.id === sub));
}

/** If both are given, only that session ends (section 2.4). Others of the same person stay. */
function endMark({ tenantId, clientId, sid, sub = '' }: Omit<ProviderLogout, 'jti'>): string {
  return `ended:${digest(tenantId, clientId, ...(sid === undefined ? ['sub', sub] : ['sid', sid]))}`;
}

const tokenMark = ({ tenantId, jti }: ProviderLogout) => `jti:${digest(tenantId, jti)}`;

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\n'), 'base64url');
}
