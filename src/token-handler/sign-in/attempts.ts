// Attempts to sign in: one per tab and try, bound to the browser that began it, and taken once. State, nonce and PKCE
// verifier are made here and stored sealed; the state only as a digest.
import { hash, randomBytes } from 'node:crypto';
import * as oidc from 'openid-client';
import type { Clock } from '../../service/clock.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import type { AttemptStore } from './attempt-store.ts';
import { attemptLifetime, attemptMemory } from './sign-in.ts';

export interface Place {
  /** URN */
  tenantId: string;
  clientId: string;
  callbackUrl: string;
  returnTo?: string;
  /** This attempt follows one that took too long. */
  restarted?: boolean;
}

export interface Begun {
  state: string;
  nonce: string;
  codeVerifier: string;
}

export type TakenAttempt =
  /** In time, and for the first time. */
  | { kind: 'open'; place: Place; secrets: Omit<Begun, 'state'> }
  | { kind: 'late'; place: Place }
  | { kind: 'used'; place: Place };

export interface Attempts {
  /** A name for a browser's attempts. */
  nameBrowser(): string;
  begin(browser: string, place: Place): Promise<Begun>;
  /** Undefined for a state that this browser never had, or had more than an hour ago. */
  take(browser: string, state: string): Promise<TakenAttempt | undefined>;
}

interface StoredPlace extends Place {
  /** Milliseconds since 1970 */
  begun: number;
}

export function createAttempts(options: { store: AttemptStore; keys: KeyRing; clock: Clock }): Attempts {
  const { store, keys, clock } = options;
  const context = (what: string, browser: string, id: string) => `${what} of attempt ${id} of browser ${browser}`;
  return {
    nameBrowser: () => randomBytes(16).toString('base64url'),
    async begin(browser, place) {
      const begun = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        codeVerifier: oidc.randomPKCECodeVerifier(),
      };
      const id = idOf(begun.state);
      const { nonce, codeVerifier } = begun;
      const stored: StoredPlace = { ...place, begun: clock().getTime() };
      await store.add(browser, id, {
        secret: keys.seal(JSON.stringify({ nonce, codeVerifier }), context('secret', browser, id)),
        place: keys.seal(JSON.stringify(stored), context('place', browser, id)),
      });
      return begun;
    },
    async take(browser, state) {
      const id = idOf(state);
      const taken = await store.take(browser, id);
      if (!taken) return undefined;
      const { begun, ...place }: StoredPlace = JSON.parse(keys.open(taken.place, context('place', browser, id)));
      const age = clock().getTime() - begun;
      if (age > attemptMemory) return undefined;
      if (taken.secret === undefined) return { kind: 'used', place };
      if (age > attemptLifetime) return { kind: 'late', place };
      return { kind: 'open', place, secrets: JSON.parse(keys.open(taken.secret, context('secret', browser, id))) };
    },
  };
}

function idOf(state: string): string {
  return hash('sha256', `formgate state ${state}`, 'base64url');
}
