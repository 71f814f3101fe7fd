// Puts together what sessions are made of, for one process: the store, the reader, sign-in and logout. Where no Redis is
// configured it refuses to start, unless told that the memory of one process will do.

import type { Tenants } from '../service/auth/identity.ts';
import { createSigningKeys } from '../service/auth/signing-keys.ts';
import type { Clock } from '../service/clock.ts';
import { addressLimit, createRateLimits } from '../service/limits/rate-limit.ts';
import { ConfigError } from '../service/operations/config.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import { createRedis, type Redis } from '../service/redis/redis.ts';
import { redisSettings } from '../service/redis/redis-fields.ts';
import type { AccessAddresses } from './access-addresses.ts';
import type { ClientCatalog } from './clients/catalog.ts';
import type { RegistrationStore } from './clients/registration-store.ts';
import type { TokenHandlerConfig } from './config.ts';
import type { KeyRing } from './keys/key-ring.ts';
import { createLogoutTokens } from './logout/logout-token.ts';
import { createProviderLogouts } from './logout/provider-logouts.ts';
import type { LogoutParts } from './logout/routes.ts';
import { createEndWatch } from './sessions/end-watch.ts';
import { liveSession, type SessionGuards, sessionTenant } from './sessions/guards.ts';
import { createMemoryStore } from './sessions/memory-store.ts';
import { createSessionReader } from './sessions/reader.ts';
import { createRecordStore } from './sessions/records.ts';
import { createRedisStore, recordIdOf } from './sessions/redis-store.ts';
import { createRefresher, type RefreshTokens } from './sessions/refresh.ts';
import type { SessionLimits } from './sessions/session.ts';
import { createSessionCookie, type SessionCookie } from './sessions/session-cookie.ts';
import { createSessions, type Sessions } from './sessions/sessions.ts';
import type { SessionStore } from './sessions/store.ts';
import { createMemoryAttemptStore, createRedisAttemptStore } from './sign-in/attempt-store.ts';
import { type Attempts, createAttempts } from './sign-in/attempts.ts';
import { browserSession } from './sign-in/browser-session.ts';
import { createSessionOpener } from './sign-in/open-session.ts';
import { createRelyingParty, type RelyingParty } from './sign-in/relying-party.ts';
import type { SignInParts } from './sign-in/routes.ts';
import { attemptMemory, mostAttempts } from './sign-in/sign-in.ts';

export interface SessionPartsOptions {
  config: TokenHandlerConfig;
  tenants: Tenants;
  catalog: ClientCatalog;
  registrations: RegistrationStore;
  addresses: AccessAddresses;
  keys: KeyRing;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}

export interface SessionParts {
  /** What routes that serve sessions need. */
  guards: SessionGuards;
  sessions: Sessions;
  /** Absent where sessions are kept in memory. */
  redis: Redis | undefined;
  signIn: SignInParts;
  logout: LogoutParts;
  cookieName: string;
  /** Why sessions cannot be read; undefined if they can. */
  redisProblem(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Throws ConfigError where it is not clear in which store sessions are kept. */
export function createSessionParts(options: SessionPartsOptions): SessionParts {
  const { config, clock, keys, log, metrics, addresses, tenants } = options;
  const limits: SessionLimits = { maxAge: config.SESSION_MAX_AGE, idle: config.SESSION_IDLE };
  const redis = openRedis(options);
  const store = redis ? createRedisStore(redis, limits) : createMemoryStore({ ...limits, clock });
  const cookie = createSessionCookie(config.SESSION_COOKIE, keys);
  const sessions = createSessions({ store, keys, limits, clock });
  const relyingParty = createRelyingParty({ addresses, metrics, timeout: config.PLATFORM_TIMEOUT });
  const { reader, ...reading } = startReading(options, { store, cookie, sessions, relyingParty, limits });
  const { TENANT_HEADER: tenantHeader } = config;
  const guards = { liveSession: liveSession(reader), sessionTenant: sessionTenant(tenants, tenantHeader) };
  const logouts = createProviderLogouts({ sessions, marks: store.marks, clock });
  const browser = browserSession(
    cookie,
    createRecordStore(store.records, keys, redis ? recordIdOf : (handle) => handle),
  );
  const rateLimits = createRateLimits({ redis, clock, log, metrics });
  const limiter = (name: string) =>
    addressLimit(rateLimits.exact({ name, most: config.SIGN_IN_LIMIT, window: config.SIGN_IN_WINDOW }));

  return {
    guards,
    sessions,
    redis,
    cookieName: cookie.name,
    signIn: {
      ...{ ...options, tenantHeader, relyingParty, sessions, browserSession: browser },
      attempts: openAttempts(options, redis),
      openSession: createSessionOpener({ sessions, providerLogouts: logouts, limits, clock, log }),
      signInLimit: limiter('sign-in'),
    },
    logout: {
      ...{ ...options, relyingParty, sessions, browserSession: browser, cookieName: cookie.name },
      providerLogouts: logouts,
      logoutTokens: createLogoutTokens({ ...options, keys: createSigningKeys(config.ACCESS_SERVICE_URL) }),
      backchannelLimit: limiter('backchannel-logout'),
    },
    redisProblem: async () => (redis && !(await redis.isReachable()) ? 'Redis does not answer' : undefined),
    async close() {
      await reading.close();
      await relyingParty.close();
      redis?.close();
    },
  };
}

interface ReadingParts {
  store: SessionStore;
  cookie: SessionCookie;
  sessions: Sessions;
  relyingParty: RelyingParty;
  limits: SessionLimits;
}

/** The reader, and what runs behind it: refreshes, and the watch over sessions that streams depend on. */
function startReading({ registrations, clock, log }: SessionPartsOptions, parts: ReadingParts) {
  const { store, sessions, relyingParty } = parts;
  const { tokens } = store;
  const refresh = refreshWith(relyingParty, registrations, log);
  const refresher = createRefresher({ sessions, tokens, refresh, clock, log });
  const endWatch = createEndWatch({ sessions, tokens, clock });
  return {
    reader: createSessionReader({ ...parts, tokens, refresher, endWatch, clock }),
    async close() {
      endWatch.close();
      await refresher.close();
    },
  };
}

function openRedis({ config, log, metrics }: SessionPartsOptions): Redis | undefined {
  const settings = redisSettings(config);
  if (settings && config.SESSION_STORE === 'memory')
    throw new ConfigError([{ name: 'SESSION_STORE', problem: 'is memory, but a Redis is configured' }]);
  if (settings) return createRedis({ settings, log, metrics });
  if (config.SESSION_STORE === 'redis')
    throw new ConfigError([{ name: 'REDIS_URL', problem: 'is required, unless SESSION_STORE is memory' }]);
  log.warn('sessions are kept in the memory of this process: they end with it, and no other replica knows them');
  return undefined;
}

function openAttempts({ keys, clock }: SessionPartsOptions, redis: Redis | undefined): Attempts {
  const limits = { most: mostAttempts, memory: attemptMemory };
  const store = redis ? createRedisAttemptStore(redis, limits, clock) : createMemoryAttemptStore(limits, clock);
  return createAttempts({ store, keys, clock });
}

/** With the registration that there is now: a client that was registered anew cannot use the tokens of the old one. */
function refreshWith(relyingParty: RelyingParty, registrations: RegistrationStore, log: Logger): RefreshTokens {
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
