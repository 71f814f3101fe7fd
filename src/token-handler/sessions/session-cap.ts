// Caps the live sessions of one person of a tenant (decision 0086). A sign-in beyond the cap ends the person's oldest
// session. Concurrent sign-ins may exceed the cap for a moment.
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { FoundSession, Session } from './session.ts';

/** Maximum number of live sessions of one person. A list of a person's sessions has the same limit. */
export const mostOfPerson = 100;

interface PersonSessions {
  /** Returns all live sessions of a person, and removes the index entries of sessions that have ended. */
  ofUser(tenantId: string, userId: string, most: 'all'): Promise<FoundSession[]>;
  end(session: Session): Promise<boolean>;
}

/**
 * Ends the oldest sessions of the person, so that at most 100 remain. `latest` has just started, and is never ended.
 * Does not throw, because the sign-in has succeeded. If the store fails, the person's next sign-in ends these sessions.
 */
export async function endOldest(latest: Session, sessions: PersonSessions, log: Logger): Promise<void> {
  const { handle, tenantId, user } = latest;
  try {
    const live = await sessions.ofUser(tenantId, user.id, 'all');
    const others = live.filter(({ session }) => session.handle !== handle);
    const oldest = others.toSorted((one, other) => other.session.created - one.session.created).slice(mostOfPerson - 1);
    for (const { session } of oldest) {
      if (!(await sessions.end(session))) continue;
      const audit = serviceEvent({
        ...{ action: 'session.replaced', by: 'token-handler' },
        ...{ tenant: session.tenantId, id: session.handle },
      });
      auditLog(log).info({ session: session.handle, audit }, 'session ended: its person has too many sessions');
    }
  } catch (error) {
    log.warn({ err: error, session: handle }, 'oldest sessions of a person not ended');
  }
}
