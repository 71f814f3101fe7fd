// Builds everything that keeps sessions alive in one process: the store, the sessions, the reader that serves requests, and
// the refresh of tokens behind it.
import type { Clock } from '../../service/clock.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Redis } from '../../service/redis/redis.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { TokenHandlerConfig } from '../config.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import type { RelyingParty } from '../sign-in/relying-party.ts';
import { createEndWatch } from './end-watch.ts';
import type { SessionReader } from './live-session.ts';
import { createMemoryStore } from './memory-store.ts';
import { createSessionReader } from './reader.ts';
import { createRedisStore } from './redis-store.ts';
import { createRefresher, type RefreshTokens } from './refresh.ts';
import type { SessionLimits } from './session.ts';
import { createSessionCookie, type SessionCookie } from './session-cookie.ts';
import { createSessions, type Sessions } from './sessions.ts';
import type { SessionStore } from './store.ts';

export interface SessionServiceOptions {
  config: TokenHandlerConfig;
  /** Undefined: sessions are kept in memory. */
  redis: Redis | undefined;
  keys: KeyRing;
  registrations: Pick<RegistrationStore, 'find'>;
  relyingParty: Pick<RelyingParty, 'refresh'>;
  clock: Clock;
  log: Logger;
}

export interface SessionService {
  store: SessionStore;
  sessions: Sessions;
  limits: SessionLimits;
  cookie: SessionCookie;
  reader: SessionReader;
  close(): Promise<void>;
}

export function createSessionService(options: SessionServiceOptions): SessionService {
  const { config, redis, keys, clock, log } = options;
  const limits: SessionLimits = { maxAge: config.SESSION_MAX_AGE, idle: config.SESSION_IDLE };
  const store = redis ? createRedisStore(redis, limits) : createMemoryStore({ ...limits, clock });
  const { tokens } = store;
  const cookie = createSessionCookie(config.SESSION_COOKIE, keys);
  const sessions = createSessions({ store, keys, limits, clock });
  const refresher = createRefresher({ sessions, tokens, refresh: refreshTokens(options), clock, log });
  const endWatch = createEndWatch({ sessions, tokens, clock });
  return {
    store,
    sessions,
    limits,
    cookie,
    reader: createSessionReader({ cookie, sessions, tokens, refresher, endWatch, limits, clock }),
    async close() {
      endWatch.close();
      await refresher.close();
    },
  };
}

/** Uses the current registration: a client that was registered again cannot use the tokens of its old registration. */
function refreshTokens({ registrations, relyingParty, log }: SessionServiceOptions): RefreshTokens {
  return async (session, refreshToken) => {
    try {
      const registration = await registrations.find(session.tenantId, session.clientId);
      if (registration?.oidcClientId !== session.oidcClientId) return { kind: 'unknown' };
      return await relyingParty.refresh(registration, refreshToken);
    } catch (error) {
      log.warn({ err: error, session: session.handle }, 'the registration for a refresh cannot be read');
      return { kind: 'unused' };
    }
  };
}
