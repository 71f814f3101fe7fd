// Starts, finds, lists and ends sessions. Other folders use sessions only through this class. A session is found if the
// store has its record and its tokens, if neither has expired, and if the key ring can decrypt both. Sessions stay in a
// cache until the store reports a change, so most requests need no round trip.
import type { IncomingMessage } from 'node:http';
import type { Store } from 'express-session';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import type { KeyRing } from '../../service/keys/key-ring.ts';
import type { ProviderAddresses } from '../provider-addresses.ts';
import { createSessionCookie, type SessionCookie } from './cookies.ts';
import { EndWatch, type Life } from './end-watch.ts';
import { createRecords, openStored, sealTokens } from './records.ts';
import { Refresher, type RefresherOptions } from './refresh.ts';
import {
  expiryOf,
  type FoundSession,
  hardLimit,
  isRefreshDue,
  isUsable,
  type LiveSession,
  type Session,
  type SessionLimits,
  type TokenSet,
} from './session.ts';
import { mostOfPerson, SessionCaps } from './session-cap.ts';
import { indexesOf, providerIndex, tenantIndex, userIndex } from './session-indexes.ts';
import { allSessions, SessionLists } from './session-lists.ts';
import { createSessionMetrics } from './session-metrics.ts';
import type { Marks, SealedTokens, SessionStore, StoredSession } from './store.ts';
import { sessionCacheLimits } from './token-size.ts';

export interface SessionsOptions extends Omit<RefresherOptions, 'sessions' | 'tokens'> {
  store: SessionStore;
  keys: KeyRing;
  limits: SessionLimits;
  cookieName: string;
  addresses: Pick<ProviderAddresses, 'mappedIssuer'>;
}

/** Milliseconds that a sign-in may take between writing the index entries and starting the session. */
const longestStart = 60_000;

export class Sessions {
  readonly cookie: SessionCookie;
  /** The store in which express-session keeps the records of sessions. */
  readonly records: Store;
  readonly marks: Marks;
  readonly limits: SessionLimits;
  readonly #store: SessionStore;
  readonly #keys: KeyRing;
  readonly #clock: Clock;
  readonly #addresses: SessionsOptions['addresses'];
  readonly #cache = new LRUCache<string, FoundSession>(sessionCacheLimits);
  /** The latest running read of each session. A change to the session drops this read, so its result is not cached. */
  readonly #reads = new Map<string, symbol>();
  readonly #touchInterval: number;
  /** Cached sessions for which a request was recorded. They leave the cache when the store reports this request. */
  readonly #touched = new WeakSet<FoundSession>();
  readonly #refresher: Refresher;
  readonly #endWatch: EndWatch;
  readonly #lists: SessionLists;
  readonly #caps: SessionCaps;

  constructor({ store, keys, limits, cookieName, addresses, ...options }: SessionsOptions) {
    this.cookie = createSessionCookie(cookieName, keys);
    this.records = createRecords(store.records, keys, limits.maxAge);
    this.marks = store.marks;
    this.limits = limits;
    this.#store = store;
    this.#keys = keys;
    this.#clock = options.clock;
    this.#addresses = addresses;
    // A recorded request makes all replicas drop the session from their caches, so only one per interval is recorded.
    this.#touchInterval = Math.min(60_000, limits.idle / 4);
    this.#refresher = new Refresher({ ...options, sessions: this, tokens: store.tokens });
    this.#endWatch = new EndWatch(this, store.tokens);
    // Keeps recent entries: their sign-in may still be running. A session without an entry could not be revoked.
    const removedUntil = () => this.#now() + limits.maxAge - longestStart;
    const indexed = { index: store.index, removedUntil };
    this.#lists = new SessionLists({
      ...indexed,
      load: (handle) => this.#load(handle, true),
      isAlive: (found) => this.isAlive(found),
    });
    store.tokens.onChange((handle) => this.#drop(handle));
    const { log, clock, metrics } = options;
    const count = () => store.tokens.count(this.#now());
    const replaced = createSessionMetrics({ registry: metrics.registry, clock, count });
    this.#caps = new SessionCaps({ ...indexed, sessions: this, limits, replaced, log });
  }

  /**
   * Returns the live session of the request's cookie, if there is one. Throws Problem `unavailable` if the store is
   * down. Records at most one request in each touch interval, and starts a refresh before the access token expires.
   */
  async ofRequest(request: IncomingMessage): Promise<LiveSession | undefined> {
    const seen = this.see(request);
    // Avoids `await` for cached sessions, which are the usual case, because each `await` creates a promise.
    const found = seen instanceof Promise ? await seen : seen;
    if (!found) return undefined;
    const now = this.#now();
    if (now - found.state.touched >= this.#touchInterval) this.#touch(found, now);
    if (isRefreshDue(found.tokens, found.session.handle, now)) this.#refresher.begin(found);
    return found;
  }

  /** Like `ofRequest`, but does not extend the session: it records no request and starts no refresh. */
  see({ headers }: IncomingMessage): FoundSession | undefined | Promise<FoundSession | undefined> {
    const handle = this.cookie.handleOf(headers.cookie);
    if (handle === undefined) return undefined;
    const cached = this.cached(handle);
    const isRefreshing = cached?.state.intent !== undefined;
    return cached && !isRefreshing ? cached : this.#unlessAbandoned(cached ?? this.read(handle));
  }

  async #unlessAbandoned(reading: FoundSession | Promise<FoundSession | undefined>): Promise<FoundSession | undefined> {
    const found = await reading;
    return found && !(await this.#refresher.endIfAbandoned(found)) ? found : undefined;
  }

  /** Returns a live session from the cache. The store has reported no change to this session since it was cached. */
  cached(handle: string): FoundSession | undefined {
    const found = this.#cache.get(handle);
    return found && this.isAlive(found) ? found : undefined;
  }

  /** Returns a live session from the store. */
  async read(handle: string): Promise<FoundSession | undefined> {
    const { tokens } = this.#store;
    const ticket = Symbol(handle);
    if (tokens.isTracked) this.#reads.set(handle, ticket);
    try {
      const found = await this.#load(handle);
      if (found && tokens.isTracked && this.#reads.get(handle) === ticket) this.#cache.set(handle, found);
      return found && this.isAlive(found) ? found : undefined;
    } finally {
      if (this.#reads.get(handle) === ticket) this.#reads.delete(handle);
    }
  }

  /**
   * Makes a session live by storing its tokens. Its record must be stored already. If the person or the tenant
   * has too many sessions, ends the oldest.
   */
  async start(session: Session, tokens: TokenSet): Promise<void> {
    const now = this.#now();
    // Writes the index entries first, because a live session that is in no index could not be revoked.
    const { handle, absoluteExpiry } = session;
    const sizes = await this.#store.index.enter(indexesOf(session), handle, absoluteExpiry, now);
    await this.#store.tokens.start(handle, this.seal(session, tokens), this.#now());
    this.#drop(handle);
    await this.#caps.endOldest(session, sizes);
  }

  /** Ends a session permanently. Returns false if it had already ended. Lists drop the entries of ended sessions. */
  async end(session: Session): Promise<boolean> {
    const wasLive = await this.#store.tokens.end(session.handle);
    this.#drop(session.handle);
    await this.#store.index.remove(indexesOf(session), session.handle).catch(() => undefined);
    return wasLive;
  }

  /** Returns the time at which the session ends if no further request arrives, in milliseconds since 1970. */
  expiryOf({ state }: Pick<FoundSession, 'state'>): number {
    return expiryOf(state, this.limits.idle);
  }

  /** Returns the sessions of a person, latest first: at most 100 sessions, or all if `most` is `all`. */
  async ofUser(tenantId: string, userId: string, most?: 'all'): Promise<FoundSession[]> {
    return this.#lists.read(userIndex(tenantId, userId), most === 'all' ? allSessions : mostOfPerson);
  }

  /**
   * Returns a page of a tenant's sessions, latest first. `after` is the last handle of the previous page; its session
   * may have ended within the last hour. Returns undefined if the position of `after` is unknown.
   */
  ofTenant(tenantId: string, top: number, after?: string): Promise<FoundSession[] | undefined> {
    return this.#lists.read(tenantIndex(tenantId), top, after);
  }

  /** Returns all sessions that belong to the session `sid` at the identity provider, in pages. */
  ofProviderSession(of: Pick<Session, 'tenantId' | 'clientId'>, sid: string): AsyncIterable<FoundSession[]> {
    return this.#lists.pages(providerIndex(of.tenantId, of.clientId, sid));
  }

  seal(session: Session, tokens: TokenSet): SealedTokens {
    return { sealed: sealTokens(this.#keys, session.handle, tokens), limit: hardLimit(session, tokens) };
  }

  async close(): Promise<void> {
    this.#endWatch.close();
    await this.#refresher.close();
  }

  /**
   * `endsUnusable` also ends a session that cannot be used, for example because its key is missing from the key ring. A
   * list removes the entry of this session, so no logout could end it after an operator has restored the key.
   */
  async #load(handle: string, endsUnusable = false): Promise<FoundSession | undefined> {
    const stored = await this.#store.tokens.load(handle);
    const found = stored && this.#open(handle, stored);
    if (endsUnusable && stored && !found) await this.#store.tokens.end(handle);
    return found;
  }

  /** Returns undefined if the session cannot be decrypted, or began before `validFrom`. */
  #open(handle: string, stored: StoredSession): FoundSession | undefined {
    const { sealed: _sealed, ...state } = stored.tokens;
    const opened = openStored(this.#keys, handle, stored);
    if (!opened) return undefined;
    const { tokens, signedIn } = opened;
    if (signedIn?.handle !== handle || signedIn.created < (this.limits.validFrom ?? 0)) return undefined;
    const session = { ...signedIn, user: { ...signedIn.user, roles: tokens.roles } };
    const found: FoundSession = {
      ...{ session, tokens, state },
      accessToken: async () =>
        isUsable(tokens, this.#now()) ? tokens.accessToken : this.#refresher.accessToken(found),
      onEnd: (listener) => this.#endWatch.onEnd(handle, listener),
    };
    return found;
  }

  #touch(found: FoundSession, now: number): void {
    if (this.#touched.has(found)) return;
    this.#touched.add(found);
    // If recording the request fails, the next request of the session is recorded.
    this.#store.tokens.touch(found.session.handle, now, this.#touchInterval).catch(() => this.#touched.delete(found));
  }

  #drop(handle: string | null): void {
    if (handle === null) {
      this.#cache.clear();
      this.#reads.clear();
    } else {
      this.#cache.delete(handle);
      this.#reads.delete(handle);
    }
  }

  isAlive({ session: { realm, issuer }, state }: Life): boolean {
    // Subjects and session ids are unique within an issuer only (OpenID Connect Core 1.0, section 2). Tokens of a
    // former identity provider must not be sent to the current one.
    if (issuer !== undefined && issuer !== (this.#addresses.mappedIssuer(realm) ?? null)) return false;
    return this.#now() < expiryOf(state, this.limits.idle);
  }

  #now(): number {
    return this.#clock().getTime();
  }
}
