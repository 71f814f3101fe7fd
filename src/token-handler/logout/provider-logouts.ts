// Sessions that the access service has ended (OpenID Connect Back-Channel Logout 1.0). Of each it remembers for a while
// that it has ended, for a sign-in that is just being finished. It verifies nothing: that is done before.
import { hash } from 'node:crypto';
import type { Clock } from '../../service/clock.ts';
import type { FoundSession, Session } from '../sessions/session.ts';
import type { Sessions } from '../sessions/sessions.ts';

export interface ProviderLogout {
  jti: string;
  /** URN */
  tenantId: string;
  clientId: string;
  /** Of the access service's session; without it, all of the person's sessions are meant. */
  sid?: string;
  /** Subject */
  sub?: string;
}

export interface ProviderLogouts {
  /** Ends what the logout names, of this tenant and client only; answers how many sessions. */
  end(logout: ProviderLogout): Promise<number>;
  /**
   * Whether a logout of this session came since its code began to be redeemed, in milliseconds since 1970. One that came
   * before is of an earlier sign-in: the access service redeems no code of a session that it has ended.
   */
  hasEnded(session: Session, since: number): Promise<boolean>;
  /** Whether a logout token came before (section 2.6, step 9). */
  isUsed(tenantId: string, jti: string): Promise<boolean>;
}

/** Milliseconds that a logout is remembered: longer than the rest of a sign-in takes, and than a logout token lives. */
const memory = 600_000;

export function createProviderLogouts(options: { sessions: Sessions; clock: Clock }): ProviderLogouts {
  const { sessions, clock } = options;
  const { marks } = sessions;
  return {
    async end(logout) {
      // First, so that a sign-in that finishes now sees either this or has its session found below.
      for (const name of marksOf(logout)) await marks.raise(name, clock().getTime(), memory);
      const found = await findSessions(sessions, logout);
      const ended = await Promise.all(found.map(({ session }) => sessions.end(session)));
      // Last: a logout that failed may be sent again.
      await marks.raise(tokenMark(logout.tenantId, logout.jti), 1, memory);
      return ended.filter((wasLive) => wasLive).length;
    },
    async hasEnded({ tenantId, clientId, sid, user }, since) {
      const names = [
        ...marksOf({ tenantId, clientId, sub: user.id }),
        ...(sid === undefined ? [] : marksOf({ tenantId, clientId, sid })),
      ];
      const values = await Promise.all(names.map((name) => marks.value(name)));
      return values.some((endedAt) => endedAt !== undefined && endedAt >= since);
    },
    isUsed: async (tenantId, jti) => (await marks.value(tokenMark(tenantId, jti))) !== undefined,
  };
}

async function findSessions(sessions: Sessions, logout: ProviderLogout): Promise<FoundSession[]> {
  const { tenantId, clientId, sid, sub } = logout;
  if (sid !== undefined) {
    const found = await sessions.ofProviderSession({ tenantId, clientId }, sid);
    return found.filter(({ session }) => sub === undefined || session.user.id === sub);
  }
  const found = sub === undefined ? [] : await sessions.ofUser(tenantId, sub, 'all');
  return found.filter(({ session }) => session.clientId === clientId);
}

/** With both, only the session is meant (section 2.4): another one of the same person stays. */
function marksOf({ tenantId, clientId, sid, sub }: Omit<ProviderLogout, 'jti'>): string[] {
  if (sid !== undefined) return [`ended:${digest(tenantId, clientId, 'sid', sid)}`];
  return sub === undefined ? [] : [`ended:${digest(tenantId, clientId, 'sub', sub)}`];
}

const tokenMark = (tenantId: string, jti: string) => `jti:${digest(tenantId, jti)}`;

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\n'), 'base64url');
}
