// Builds the modules for sign-in and logout.
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { Foundation } from '../foundation.ts';
import { createLogoutMetrics } from '../logout/logout-metrics.ts';
import { createLogoutVerifier } from '../logout/logout-token.ts';
import { createProviderLogouts } from '../logout/provider-logouts.ts';
import { cookieScheme } from '../sessions/cookies.ts';
import { notEmbedded } from '../sessions/guards.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createAttemptCookies } from './attempt-cookies.ts';
import { createAttempts } from './attempts.ts';
import { browserSession } from './browser-session.ts';
import { createSessionOpener } from './open-session.ts';
import { createSignInOutcomes } from './sign-in-outcomes.ts';

export interface SignInsOptions extends Foundation {
  registrations: Pick<RegistrationStore, 'find'>;
  sessions: Sessions;
}

export type SignIns = ReturnType<typeof createSignIns>;

export function createSignIns(options: SignInsOptions) {
  const { platform, sessions, signingKeys } = options;
  const { tenants } = platform;
  const providerLogouts = createProviderLogouts(options);
  const attempts = createAttempts({ ...options, marks: sessions.marks });
  return {
    attempts,
    attemptCookies: createAttemptCookies(sessions.cookie.name, attempts),
    openSession: createSessionOpener({ ...options, providerLogouts }),
    outcomes: createSignInOutcomes(options),
    providerLogouts,
    logouts: createLogoutMetrics(options.metrics),
    verifyLogoutToken: createLogoutVerifier({ ...options, tenants, keys: signingKeys }),
    browserSession: browserSession(sessions.cookie, sessions.records),
    cookieScheme: cookieScheme(sessions.cookie.name),
    notEmbedded: notEmbedded(sessions.cookie.name),
  };
}
