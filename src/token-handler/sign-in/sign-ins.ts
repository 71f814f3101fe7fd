// Builds sign-in and logout for one process: attempts, the relying party's sessions, and logouts by the identity provider.
import type { Tenants } from '../../service/auth/identity.ts';
import { createSigningKeys } from '../../service/auth/signing-keys.ts';
import type { Clock } from '../../service/clock.ts';
import type { Guard } from '../../service/http/http-app.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Redis } from '../../service/redis/redis.ts';
import type { AccessAddresses } from '../access-addresses.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { TokenHandlerConfig } from '../config.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { createLogoutTokens, type LogoutTokens } from '../logout/logout-token.ts';
import { createProviderLogouts, type ProviderLogouts } from '../logout/provider-logouts.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createMemoryAttemptStore, createRedisAttemptStore } from './attempt-store.ts';
import { type Attempts, createAttempts } from './attempts.ts';
import { browserSession } from './browser-session.ts';
import { createSessionOpener } from './open-session.ts';
import { attemptMemory, mostAttempts } from './sign-in.ts';

export interface SignInsOptions {
  config: TokenHandlerConfig;
  /** Undefined: sessions and attempts are kept in memory. */
  redis: Redis | undefined;
  keys: KeyRing;
  addresses: AccessAddresses;
  tenants: Pick<Tenants, 'byRealm'>;
  registrations: Pick<RegistrationStore, 'find'>;
  sessions: Sessions;
  clock: Clock;
  log: Logger;
}

export interface SignIns {
  attempts: Attempts;
  openSession: ReturnType<typeof createSessionOpener>;
  providerLogouts: ProviderLogouts;
  logoutTokens: LogoutTokens;
  /** Sets `request.session`. */
  browserSession: Guard;
}

export function createSignIns(options: SignInsOptions): SignIns {
  const { config, redis, keys, addresses, tenants, registrations, sessions, clock, log } = options;
  const attemptLimits = { most: mostAttempts, memory: attemptMemory };
  const attemptStore = redis
    ? createRedisAttemptStore(redis, attemptLimits, clock)
    : createMemoryAttemptStore(attemptLimits, clock);
  const providerLogouts = createProviderLogouts({ sessions, clock });
  const signingKeys = createSigningKeys(config.ACCESS_SERVICE_URL);
  return {
    attempts: createAttempts({ store: attemptStore, keys, clock }),
    openSession: createSessionOpener({ sessions, providerLogouts, clock, log }),
    providerLogouts,
    logoutTokens: createLogoutTokens({ addresses, tenants, registrations, keys: signingKeys, clock }),
    browserSession: browserSession(sessions.cookie, sessions.records),
  };
}
