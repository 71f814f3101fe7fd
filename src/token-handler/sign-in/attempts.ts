// Begins attempts to sign in, and reads them from cookies. Each attempt has its own encrypted cookie, which contains
// everything that the callback needs. The session store therefore keeps nothing about a browser that has not signed in,
// except for marks of used attempts.
import { hash, randomInt } from 'node:crypto';
import * as oidc from 'openid-client';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest } from '../../service/http/problem.ts';
import type { KeyRing } from '../../service/keys/key-ring.ts';
import { retryUntilDone } from '../../service/retry.ts';
import { callbackEnding } from '../clients/client-path.ts';
import type { Marks } from '../sessions/store.ts';
import type { StartedSignIn } from './sign-in.ts';

/** Milliseconds that an attempt to sign in may take. */
const lifetime = 600_000;
/**
 * Milliseconds for which an attempt's cookie is accepted. If the attempt is older than `lifetime`, the callback starts
 * the sign-in again.
 */
export const memory = 3_600_000;
/** Maximum difference between the clocks of two replicas, in milliseconds. */
const clockSkew = 60_000;
/**
 * Maximum number of characters in the value of an attempt's cookie. Browsers refuse a cookie if its name and value
 * together have more than 4,096 characters (RFC 6265bis section 5.6).
 */
const mostOfCookie = 4_000;

/** The request that started the sign-in. */
export interface SignInRequest extends StartedSignIn {
  /** True if this attempt replaces an earlier attempt that took too long or failed temporarily. */
  restarted?: boolean;
}

export interface AttemptSecrets {
  nonce: string;
  codeVerifier: string;
}

export interface Attempt extends AttemptSecrets {
  /** Id of the attempt in its cookie, in the store and in the record of the session: a digest of the OAuth `state`. */
  id: string;
  signIn: SignInRequest;
  /** Start of the attempt, in milliseconds since 1970. */
  begun: number;
  /**
   * The earliest accepted `auth_time`, in milliseconds since 1970, if the frontend asked for a `max_age`. The age
   * counts at the start of the attempt (OpenID Connect Core 1.0, section 3.1.2.1): after the person has signed in, the
   * identity provider may show further pages.
   */
  earliestAuthTime?: number | undefined;
  /** True if the attempt began more than ten minutes ago. Its nonce and PKCE verifier are then not used. */
  isLate: boolean;
}

export interface Begun extends AttemptSecrets {
  state: string;
  id: string;
  signIn: SignInRequest;
  /** The value of the attempt's cookie. */
  sealed: string;
}

export type Attempts = ReturnType<typeof createAttempts>;

type UsedMarks = Pick<Marks, 'claim' | 'remove'>;

export interface AttemptsOptions {
  keys: KeyRing;
  clock: Clock;
  marks: UsedMarks;
}

/**
 * The content of an attempt's cookie. A browser may send 20 of these cookies, so the content must be short: it is an
 * array, and `callback` omits the usual ending of callbackUrls.
 */
type Content = [begun: number, tenantId: string, clientId: string, callback: string, returnTo?: string, rest?: Rest];

type Rest = Pick<SignInRequest, 'restarted' | 'asked'>;

export function createAttempts({ keys, clock, marks }: AttemptsOptions) {
  return {
    /** Begins an attempt. Throws Problem `invalid-request` if the sign-in request does not fit into a cookie. */
    begin(signIn: SignInRequest): Begun {
      const state = oidc.randomState();
      const id = attemptId(state);
      const { tenantId, clientId, callbackUrl, returnTo, ...rest } = signIn;
      const content: Content = [clock().getTime(), tenantId, clientId, shorten(callbackUrl, clientId)];
      const hasRest = Object.values(rest).some((value) => value !== undefined);
      if (returnTo !== undefined || hasRest) content.push(returnTo ?? '');
      if (hasRest) content.push(rest);
      const sealed = keys.seal(JSON.stringify(content), contextOf(id));
      if (sealed.length > mostOfCookie) throw tooLong(signIn);
      return { state, id, signIn, sealed, ...secretsOf(sealed) };
    },
    /**
     * Decrypts the value of an attempt's cookie. Returns undefined if the value was changed, if it belongs to another
     * id, or if the attempt is older than an hour.
     */
    open(id: string, sealed: string): Attempt | undefined {
      const content = openContent(keys, id, sealed);
      if (!content) return undefined;
      const [begun, tenantId, clientId, callback, returnTo, rest] = content;
      const age = clock().getTime() - begun;
      if (age > memory) return undefined;
      return {
        id,
        signIn: {
          tenantId,
          clientId,
          callbackUrl: lengthen(callback, clientId),
          ...(returnTo && { returnTo }),
          ...rest,
        },
        begun,
        ...earliestAuthTime(begun, rest?.asked?.max_age),
        isLate: age > lifetime,
        ...secretsOf(sealed),
      };
    },
    /**
     * Returns true only for the first call for an attempt. Marks the attempt as used until it is certainly late. If the
     * store fails, the attempt can still be claimed.
     */
    async claim({ id, begun }: Attempt): Promise<boolean> {
      const [name, value] = [`attempt:${id}`, randomInt(2 ** 48 - 1)];
      try {
        return await marks.claim(name, value, begun + lifetime - clock().getTime() + clockSkew);
      } catch (error) {
        removeLater(marks, name, value);
        throw error;
      }
    },
  };
}

/**
 * Milliseconds for which the removal of a mark is retried. After that, the person has probably started another sign-in.
 */
const longestRemoval = 60_000;

/**
 * Removes a mark in the background. The store may have stored the mark although its response was lost. The value
 * ensures that the mark of another request, which completes the attempt, stays.
 */
function removeLater(marks: UsedMarks, name: string, value: number): void {
  retryUntilDone(() => marks.remove(name, value), {
    backoff: { first: 100, cap: 1_000 },
    signal: AbortSignal.timeout(longestRemoval),
    onFailure: () => undefined,
  }).catch(() => undefined);
}

/**
 * Returns the id of the attempt with this state. The id is 96 bits of a digest of the state, so the attempt's cookie
 * does not reveal the state.
 */
export function attemptId(state: string): string {
  return hash('sha256', `formgate state ${state}`, 'base64url').slice(0, 16);
}

export const attemptIdPattern = /^[\w-]{16}$/;

/** Replaces the usual ending of a callbackUrl with a backslash, which no callbackUrl contains. */
function shorten(callbackUrl: string, clientId: string): string {
  const ending = callbackEnding(clientId);
  return callbackUrl.endsWith(ending) ? `${callbackUrl.slice(0, -ending.length)}\\` : callbackUrl;
}

function lengthen(callback: string, clientId: string): string {
  return callback.endsWith('\\') ? `${callback.slice(0, -1)}${callbackEnding(clientId)}` : callback;
}

const contextOf = (id: string) => `attempt ${id}`;

function openContent(keys: KeyRing, id: string, sealed: string): Content | undefined {
  try {
    return JSON.parse(keys.open(sealed, contextOf(id)));
  } catch {
    return undefined;
  }
}

const earliestAuthTime = (begun: number, maxAge: string | undefined) =>
  maxAge === undefined ? {} : { earliestAuthTime: begun - Number(maxAge) * 1_000 };

/**
 * Derives the nonce and the code verifier from the value of the attempt's cookie, which only this browser has. The
 * value contains 28 random bytes. Storing both secrets would lengthen the cookie, and a browser may send 20 such
 * cookies in one header.
 */
function secretsOf(sealed: string): AttemptSecrets {
  const digest = (use: string) => hash('sha256', `formgate ${use} of ${sealed}`, 'base64url');
  return { nonce: digest('nonce'), codeVerifier: digest('code verifier') };
}

function tooLong({ callbackUrl, returnTo = '' }: SignInRequest) {
  const longest = returnTo.length >= callbackUrl.length ? 'returnTo' : 'callbackUrl';
  const detail = 'is too long: a cookie must hold it together with the other parameters';
  return invalidRequest([{ pointer: `/query/${longest}`, detail }]);
}
