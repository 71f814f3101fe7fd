// Caps the sessions of a person and of a tenant (decision 0086). A sign-in beyond a cap ends the oldest session of the
// person or the tenant. Concurrent sign-ins may exceed a cap for a moment.
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { FoundSession, Session, SessionLimits } from './session.ts';
import { tenantIndex, userIndex } from './session-indexes.ts';
import type { ReplacedSessions } from './session-metrics.ts';
import type { SessionIndex } from './store.ts';

/** Maximum number of live sessions of one person. A list of a person's sessions has the same limit. */
export const mostOfPerson = 100;

/** Maximum number of a tenant's entries that one sign-in removes. There are several only after the cap was lowered. */
const mostRemoved = 10;

const messages = {
  person: 'session ended: its person has too many sessions',
  tenant: 'session ended: its tenant has too many sessions',
};

export interface SessionCapsOptions {
  sessions: {
    /** Returns all live sessions of a person, and removes the index entries of sessions that have ended. */
    ofUser(tenantId: string, userId: string, most: 'all'): Promise<FoundSession[]>;
    read(handle: string): Promise<FoundSession | undefined>;
    end(session: Session): Promise<boolean>;
  };
  index: Pick<SessionIndex, 'oldest' | 'remove'>;
  limits: Pick<SessionLimits, 'mostOfTenant'>;
  /** Entries without a session that expire later may belong to a running sign-in, and must stay. */
  removedUntil(): number;
  replaced: ReplacedSessions;
  log: Logger;
}

/** The number of entries of each index that contains the new session. */
type Sizes = ReadonlyMap<string, number>;

export class SessionCaps {
  readonly #options: SessionCapsOptions;

  constructor(options: SessionCapsOptions) {
    this.#options = options;
  }

  /**
   * Ends the oldest sessions of the person and of the tenant, so that neither has more than its cap. `latest` has just
   * started, and is never ended. Does not throw, because the sign-in has succeeded. If the store fails, a later sign-in
   * ends these sessions.
   */
  async endOldest(latest: Session, sizes: Sizes): Promise<void> {
    try {
      // Both usually read nothing, because the indexes have fewer entries than the caps.
      await this.#endOfPerson(latest, sizes);
      await this.#endOfTenant(latest, sizes);
    } catch (error) {
      this.#options.log.warn({ err: error, session: latest.handle }, 'oldest sessions not ended');
    }
  }

  async #endOfPerson({ handle, tenantId, user }: Session, sizes: Sizes): Promise<void> {
    if ((sizes.get(userIndex(tenantId, user.id)) ?? 0) <= mostOfPerson) return;
    const live = await this.#options.sessions.ofUser(tenantId, user.id, 'all');
    const others = live.filter(({ session }) => session.handle !== handle);
    const latestFirst = others.toSorted((one, other) => other.session.created - one.session.created);
    for (const { session } of latestFirst.slice(mostOfPerson - 1)) await this.#replace(session, 'person');
  }

  async #endOfTenant({ handle, tenantId }: Session, sizes: Sizes): Promise<void> {
    const { sessions, index, limits, removedUntil } = this.#options;
    const name = tenantIndex(tenantId);
    const excess = (sizes.get(name) ?? 0) - (limits.mostOfTenant ?? Number.POSITIVE_INFINITY);
    if (excess <= 0) return;
    for (const oldest of await index.oldest(name, Math.min(excess, mostRemoved))) {
      if (oldest === handle) continue;
      const found = await sessions.read(oldest);
      if (found) await this.#replace(found.session, 'tenant');
      // The session was idle for too long. Its other entries are removed when they are listed, or expire.
      else await index.remove([name], oldest, removedUntil());
    }
  }

  async #replace(session: Session, cap: keyof typeof messages): Promise<void> {
    const { sessions, replaced, log } = this.#options;
    if (!(await sessions.end(session))) return;
    replaced.inc({ cap });
    const { handle: id, tenantId: tenant } = session;
    const audit = serviceEvent({ action: 'session.replaced', by: 'token-handler', tenant, id });
    auditLog(log).info({ session: id, audit }, messages[cap]);
  }
}
