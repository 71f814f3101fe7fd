// Builds the modules for sign-in and logout of one process.
import { createSigningKeys } from '../../service/auth/signing-keys.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { Foundation } from '../foundation.ts';
import { createLogoutVerifier } from '../logout/logout-token.ts';
import { createProviderLogouts } from '../logout/provider-logouts.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createAttempts } from './attempts.ts';
import { browserSession } from './browser-session.ts';
import { createSessionOpener } from './open-session.ts';

export interface SignInsOptions extends Foundation {
  registrations: Pick<RegistrationStore, 'find'>;
  sessions: Sessions;
}

export type SignIns = ReturnType<typeof createSignIns>;

export function createSignIns(options: SignInsOptions) {
  const { config, platform, sessions } = options;
  const { tenants } = platform;
  const providerLogouts = createProviderLogouts(options);
  const signingKeys = createSigningKeys(config.ACCESS_SERVICE_URL, config.TENANT_ISSUERS);
  return {
    attempts: createAttempts(options),
    openSession: createSessionOpener({ ...options, providerLogouts }),
    providerLogouts,
    verifyLogoutToken: createLogoutVerifier({ ...options, tenants, keys: signingKeys }),
    browserSession: browserSession(sessions.cookie, sessions.records),
  };
}
