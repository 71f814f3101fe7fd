// Builds sign-in and logout for one process.
import { createSigningKeys } from '../../service/auth/signing-keys.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { Foundation } from '../foundation.ts';
import { createLogoutVerifier } from '../logout/logout-token.ts';
import { createProviderLogouts } from '../logout/provider-logouts.ts';
import { createRecordStore } from '../sessions/records.ts';
import { recordIdOf } from '../sessions/redis-store.ts';
import type { SessionService } from '../sessions/session-service.ts';
import { createAttempts } from './attempts.ts';
import { browserSession } from './browser-session.ts';
import { createSessionOpener } from './open-session.ts';

export interface SignInsOptions extends Foundation {
  registrations: Pick<RegistrationStore, 'find'>;
  sessionService: SessionService;
}

export type SignIns = ReturnType<typeof createSignIns>;

export function createSignIns(options: SignInsOptions) {
  const { config, redis, keys, platform, sessionService, clock } = options;
  const { tenants } = platform;
  const { sessions, store, limits, cookie } = sessionService;
  const providerLogouts = createProviderLogouts({ sessions, marks: store.marks, clock });
  const signingKeys = createSigningKeys(config.ACCESS_SERVICE_URL);
  const records = createRecordStore(store.records, keys, redis ? recordIdOf : (handle) => handle);
  return {
    attempts: createAttempts(options),
    openSession: createSessionOpener({ ...options, sessions, providerLogouts, limits }),
    providerLogouts,
    verifyLogoutToken: createLogoutVerifier({ ...options, tenants, keys: signingKeys }),
    browserSession: browserSession(cookie, records),
  };
}
