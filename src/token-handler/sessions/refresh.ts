// Refreshes the tokens of sessions. Only one replica at a time attempts to refresh a token set: it stores its intent
// before it sends the refresh token. A refresh token that may have been used is never sent again, because the identity
// provider may treat a reused token as stolen (RFC 9700 section 4.14.2). A refresh never revives an ended session.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import { retryUntilDone } from '../../service/retry.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { RelyingParty } from '../sign-in/relying-party.ts';
import {
  type FoundSession,
  isUsable,
  type RefreshOutcome,
  type Session,
  type TokenSet,
  tokenSetOf,
  withoutRefreshToken,
} from './session.ts';
import type { SealedTokens, TokenStore } from './store.ts';

export interface RefreshedSessions {
  read(handle: string): Promise<FoundSession | undefined>;
  end(session: Session): Promise<boolean>;
  seal(session: Session, tokens: TokenSet): SealedTokens;
}

export interface RefresherOptions {
  sessions: RefreshedSessions;
  tokens: TokenStore;
  registrations: Pick<RegistrationStore, 'find'>;
  /** `refresh` sends the refresh token once, and does not throw. */
  relyingParty: Pick<RelyingParty, 'refresh'>;
  clock: Clock;
  log: Logger;
}

/** Milliseconds after which the replica that wrote an intent must have died. Longer than any attempt takes. */
const longestAttempt = 40_000;
/** Milliseconds to wait for another replica's attempt before reading the age of its intent. */
const watchTime = 2_000;
/** Milliseconds to wait before the next attempt if the refresh token was not used. */
const pauseTime = 5_000;
const backoff = { first: 100, cap: 1_000 };
const most = 10_000;

export class Refresher {
  readonly #options: RefresherOptions;
  readonly #now: () => number;
  readonly #attempts = new Map<string, Promise<void>>();
  readonly #waits = new Map<string, Promise<string>>();
  /** Sessions for which no attempt starts at the moment, by handle, with the reason. */
  readonly #pauses: LRUCache<string, 'unused' | 'client-refused'>;
  /** Intents of this replica, by session, whose claim the store did not confirm. Their refresh token was not sent. */
  readonly #unconfirmed = new LRUCache<string, string>({ max: most });
  #isStopped = false;

  constructor(options: RefresherOptions) {
    this.#options = options;
    this.#now = () => options.clock().getTime();
    this.#pauses = new LRUCache({ max: most, ttl: pauseTime, ttlResolution: 0, perf: { now: this.#now } });
  }

  /** Starts a refresh in the background, unless another attempt is running or a failed attempt was recent. */
  begin(found: FoundSession): void {
    const { handle } = found.session;
    if (found.tokens.refreshToken === undefined || this.#isHeldElsewhere(found)) return;
    if (this.#attempts.has(handle) || this.#pauses.has(handle)) return;
    this.#run(found).catch((error: unknown) => {
      this.#pauses.set(handle, 'unused');
      this.#options.log.warn({ err: error, session: handle }, 'token refresh could not start');
    });
  }

  /**
   * Waits for a new access token after the old one has expired. Throws Problem `unauthenticated` if the session has
   * ended, and `unavailable` if no new token can be obtained at the moment.
   */
  accessToken({ session: { handle } }: FoundSession): Promise<string> {
    return shared(this.#waits, handle, () => this.#settle(handle));
  }

  /** Waits for running attempts, at most 4 s. */
  async close(): Promise<void> {
    this.#isStopped = true;
    await Promise.race([Promise.allSettled(this.#attempts.values()), delay(4_000, undefined, { ref: false })]);
  }

  #run(found: FoundSession): Promise<void> {
    return shared(this.#attempts, found.session.handle, () => this.#attempt(found));
  }

  async #settle(handle: string): Promise<string> {
    const started = this.#now();
    for (;;) {
      const found = await this.#options.sessions.read(handle);
      if (!found) throw ended();
      const now = this.#now();
      if (isUsable(found.tokens, now)) return found.tokens.accessToken;
      const attempt = this.#attempts.get(handle);
      const pause = this.#pauses.get(handle);
      if (attempt) await attempt;
      else if (await this.#isOver(found, now - started)) {
        await this.#options.sessions.end(found.session);
        throw ended();
      } else if (this.#isHeldElsewhere(found)) await delay(150);
      else if (pause) throw noNewToken(pause);
      else await this.#run(found);
    }
  }

  /**
   * True if no refresh can succeed: there is no refresh token, or the replica that may have sent it has died.
   * `watched`: milliseconds that the caller has waited.
   */
  async #isOver(found: FoundSession, watched: number): Promise<boolean> {
    if (found.tokens.refreshToken === undefined) return true;
    if (!this.#isHeldElsewhere(found) || watched < watchTime) return false;
    return (await this.#options.tokens.intentAge(found.session.handle)) > longestAttempt;
  }

  #isHeldElsewhere({ session, state: { intent } }: FoundSession): boolean {
    return intent !== undefined && this.#unconfirmed.get(session.handle) !== intent;
  }

  /** Throws Problem `unavailable` if the store cannot be reached before the refresh token is sent. */
  async #attempt(found: FoundSession): Promise<void> {
    const { session, tokens, state } = found;
    const { handle } = session;
    const { refreshToken } = tokens;
    if (refreshToken === undefined) return;
    const id = this.#unconfirmed.get(handle) ?? randomUUID();
    this.#unconfirmed.set(handle, id);
    const claim = await this.#options.tokens.claim(handle, state.version, id);
    this.#unconfirmed.delete(handle);
    if (claim !== 'claimed') return;
    const outcome = await this.#present(session, refreshToken);
    this.#log(session, outcome);
    await this.#conclude(found, id, outcome).catch((error: unknown) => {
      this.#options.log.error({ err: error, session: handle, outcome: outcome.kind }, 'token refresh not stored');
    });
  }

  /** Sends the token only if the client was not registered again: a new registration cannot use tokens of the old. */
  async #present(session: Session, refreshToken: string): Promise<RefreshOutcome> {
    const { registrations, relyingParty, log } = this.#options;
    try {
      const registration = await registrations.find(session.tenantId, session.clientId);
      if (registration?.oidcClientId !== session.oidcClientId) return { kind: 'unknown' };
      return await relyingParty.refresh(registration, refreshToken);
    } catch (error) {
      log.warn({ err: error, session: session.handle }, 'registration for a token refresh could not be read');
      return { kind: 'unused' };
    }
  }

  async #conclude({ session, tokens: set, state }: FoundSession, id: string, outcome: RefreshOutcome): Promise<void> {
    const { sessions, tokens } = this.#options;
    const { handle } = session;
    const replace = (next: TokenSet) => {
      const sealed = sessions.seal(session, next);
      return this.#write(sealed.limit, () => tokens.conclude(handle, id, this.#now(), sealed));
    };
    if (outcome.kind === 'refreshed') await replace(tokenSetOf(outcome.response, this.#now(), set));
    else if (outcome.kind === 'refused') await this.#write(state.limit, () => sessions.end(session));
    else if (outcome.kind === 'unknown') await replace(withoutRefreshToken(set));
    else {
      this.#pauses.set(handle, outcome.kind);
      await this.#write(state.limit, () => tokens.conclude(handle, id, this.#now()));
    }
  }

  /** Retries a write while the store is unavailable, until `until`, when the session ends anyway. */
  async #write(until: number, work: () => Promise<unknown>): Promise<void> {
    const onFailure = (error: unknown) => {
      if (this.#isStopped || this.#now() > until || !(error instanceof Problem)) throw error;
    };
    await retryUntilDone(async () => void (await work()), { backoff, signal: AbortSignal.any([]), onFailure });
  }

  #log({ handle, tenantId, clientId, oidcClientId }: Session, { kind }: RefreshOutcome): void {
    if (kind === 'refreshed') return;
    const { log } = this.#options;
    const about = { session: handle, tenant: tenantId, client: clientId, outcome: kind };
    if (kind !== 'client-refused') log.warn(about, 'token refresh failed');
    else
      log.error(
        { ...about, oidcClientId },
        'the identity provider rejected the credentials of a client: correct them there, or register the client again',
      );
  }
}

/** Returns the running work of this key, or starts new work. */
function shared<T>(running: Map<string, Promise<T>>, key: string, work: () => Promise<T>): Promise<T> {
  const present = running.get(key);
  if (present) return present;
  const started = work().finally(() => running.delete(key));
  running.set(key, started);
  return started;
}

function ended(): Problem {
  return new Problem('unauthenticated', 'The session has ended.');
}

/** The session does not end, because an administrator can correct the client without a new sign-in. */
function noNewToken(why: 'unused' | 'client-refused'): Problem {
  const detail =
    why === 'unused'
      ? 'The identity provider cannot be reached at the moment.'
      : 'The identity provider no longer accepts this client: an administrator has to register it again.';
  return new Problem('unavailable', detail, { headers: { 'Retry-After': '5' } });
}
