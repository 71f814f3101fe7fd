// Starts, finds, lists and ends sessions. A session that was read stays in the cache until the store reports a change. A
// session is found only if it is in the store, within its limits, and encrypted with a current key.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { openRecord } from './records.ts';
import { hardLimit, type Session, type SessionLimits } from './session.ts';
import { expiryOf, type SealedTokens, type SessionIndex, type SessionStore, type StoredTokens } from './store.ts';
import type { TokenSet } from './token-set.ts';

/** A session as it was read; immutable. */
export interface FoundSession {
  session: Session;
  tokens: TokenSet;
  stored: Pick<StoredTokens, 'version' | 'limit' | 'touched' | 'intent'>;
}

export interface Sessions {
  /** Makes a session live. Its record must be stored already. */
  start(session: Session, tokens: TokenSet): Promise<void>;
  /** From the cache if it is there and alive; else from the store. */
  find(handle: string): Promise<FoundSession | undefined>;
  /** From the store. */
  read(handle: string): Promise<FoundSession | undefined>;
  /** When the session ends if no further request comes. */
  expiryOf(found: Pick<FoundSession, 'stored'>): number;
  /** Of a person, latest first: 100 of them, unless all are wanted. */
  ofUser(tenantId: string, userId: string, most?: 'all'): Promise<FoundSession[]>;
  /** A page of a tenant's, latest first; `after`: handle of the last one before. */
  ofTenant(tenantId: string, top: number, after?: string): Promise<FoundSession[]>;
  /** By the access service's session id: all of them. */
  ofProviderSession(session: Pick<Session, 'tenantId' | 'clientId'>, sid: string): Promise<FoundSession[]>;
  /** For good. False when it had ended already. */
  end(session: Session): Promise<boolean>;
  seal(session: Session, tokens: TokenSet): SealedTokens;
  /** `listener` gets the handle of a session that may have changed; null for all of them. */
  onChange(listener: (handle: string | null) => void): () => void;
}

export interface SessionsOptions {
  store: Pick<SessionStore, 'tokens' | 'index'>;
  keys: KeyRing;
  limits: SessionLimits;
  clock: Clock;
}

/** Bytes of what is kept; about 8,000 sessions. */
const cacheSize = 64 * 1024 * 1024;
/** More sessions of one person than this are not listed, nor read at the same time. */
const mostOfUser = 100;
const all = Number.MAX_SAFE_INTEGER;
/** Milliseconds that a sign-in has from its entry in the indexes until its session lives. */
const longestStart = 60_000;

export function createSessions({ store, keys, limits, clock }: SessionsOptions): Sessions {
  const { tokens: tokenStore, index } = store;
  const cache = createCache(store);
  const now = () => clock().getTime();

  async function load(handle: string): Promise<FoundSession | undefined> {
    const stored = await tokenStore.load(handle);
    if (!stored) return undefined;
    const session = openRecord(keys, handle, stored.record)?.signedIn;
    const tokens = openTokens(keys, handle, stored.tokens.sealed);
    if (session?.handle !== handle || !tokens) return undefined;
    const { version, limit, touched, intent } = stored.tokens;
    const user = { ...session.user, roles: tokens.roles };
    return { session: { ...session, user }, tokens, stored: { version, limit, touched, ...(intent && { intent }) } };
  }

  const isAlive = (found: FoundSession) => now() < expiryOf(found.stored, limits.idle);
  const alive = (found: FoundSession | undefined) => (found && isAlive(found) ? found : undefined);

  const loadAll = createListing(index, { load, isAlive, latestEnd: () => now() + limits.maxAge - longestStart });
  const read = (handle: string) => cache.load(handle, load).then(alive);
  return {
    async start(session, tokens) {
      const { sealed, limit } = sealTokens(keys, session, tokens);
      // Before the session lives: one that is in no index could not be revoked.
      await index.enter(indexesOf(session), session.handle, session.absoluteExpiry, now());
      await tokenStore.start(session.handle, { sealed, limit }, now());
      cache.drop(session.handle);
    },
    async find(handle) {
      const kept = cache.get(handle);
      return kept && isAlive(kept) ? kept : read(handle);
    },
    read,
    expiryOf: ({ stored }) => expiryOf(stored, limits.idle),
    async ofUser(tenantId, userId, most) {
      const name = userIndex(tenantId, userId);
      return loadAll(await index.entries(name, most === 'all' ? all : mostOfUser), name);
    },
    async ofTenant(tenantId, top, after) {
      const name = tenantIndex(tenantId);
      return loadAll(await index.entries(name, top, after), name);
    },
    async ofProviderSession({ tenantId, clientId }, sid) {
      const name = providerIndex(tenantId, clientId, sid);
      return loadAll(await index.entries(name, all), name);
    },
    async end(session) {
      const wasLive = await tokenStore.end(session.handle);
      cache.drop(session.handle);
      await index.remove(indexesOf(session), session.handle);
      return wasLive;
    },
    seal: (session, tokens) => sealTokens(keys, session, tokens),
    onChange: (listener) => tokenStore.onChange(listener),
  };
}

interface ListingParts {
  load(handle: string): Promise<FoundSession | undefined>;
  isAlive(found: FoundSession): boolean;
  /** Of an entry that may be forgotten: one that is kept for longer may be of a session that is about to live. */
  latestEnd(): number;
}

/** Reads the sessions that an index names, and has it forget those that there are not. */
function createListing(index: SessionIndex, { load, isAlive, latestEnd }: ListingParts) {
  return async (handles: string[], name: string): Promise<FoundSession[]> => {
    const alive: FoundSession[] = [];
    for (let start = 0; start < handles.length; start += mostOfUser) {
      const some = handles.slice(start, start + mostOfUser);
      const found = await Promise.all(some.map(load));
      const gone = some.filter((_, position) => !found[position]);
      // Without its entry, a session that begins to live now could be neither seen nor revoked.
      await Promise.all(gone.map((handle) => index.remove([name], handle, latestEnd())));
      alive.push(...found.filter((one): one is FoundSession => one !== undefined && isAlive(one)));
    }
    return alive;
  };
}

interface Cache {
  get(handle: string): FoundSession | undefined;
  load(handle: string, read: (handle: string) => Promise<FoundSession | undefined>): Promise<FoundSession | undefined>;
  drop(handle: string): void;
}

function createCache({ tokens }: Pick<SessionStore, 'tokens'>): Cache {
  const kept = new LRUCache<string, FoundSession>({
    maxSize: cacheSize,
    sizeCalculation: ({ tokens: set }) => 3_000 + set.accessToken.length + (set.idToken?.length ?? 0),
  });
  // A change may be told while a read is under way: what that read answers is then not kept.
  const reading = new Map<string, symbol>();
  const drop = (handle: string | null) => {
    if (handle === null) {
      kept.clear();
      reading.clear();
    } else {
      kept.delete(handle);
      reading.delete(handle);
    }
  };
  tokens.onChange(drop);
  return {
    get: (handle) => kept.get(handle),
    async load(handle, read) {
      const ticket = Symbol(handle);
      if (tokens.mayKeep) reading.set(handle, ticket);
      try {
        const found = await read(handle);
        if (found && tokens.mayKeep && reading.get(handle) === ticket) kept.set(handle, found);
        return found;
      } finally {
        if (reading.get(handle) === ticket) reading.delete(handle);
      }
    },
    drop,
  };
}

const tokensContext = (handle: string) => `tokens of session ${handle}`;

function sealTokens(keys: KeyRing, session: Session, tokens: TokenSet): SealedTokens {
  return {
    sealed: keys.seal(JSON.stringify(tokens), tokensContext(session.handle)),
    limit: hardLimit(session, tokens),
  };
}

/** Undefined for what cannot be opened: a set under a dropped key is a session that has ended. */
function openTokens(keys: KeyRing, handle: string, sealed: string): TokenSet | undefined {
  try {
    return JSON.parse(keys.open(sealed, tokensContext(handle)));
  } catch {
    return undefined;
  }
}

// Digests, so that a copy of the store does not list who is signed in.
const digest = (...parts: string[]) => hash('sha256', parts.join('\n'), 'base64url');
const tenantIndex = (tenantId: string) => `tenant:${digest(tenantId)}`;
const userIndex = (tenantId: string, userId: string) => `user:${digest(tenantId, userId)}`;
const providerIndex = (tenantId: string, clientId: string, sid: string) => `sid:${digest(tenantId, clientId, sid)}`;

function indexesOf({ tenantId, clientId, user, sid }: Session): string[] {
  const indexes = [tenantIndex(tenantId), userIndex(tenantId, user.id)];
  return sid === undefined ? indexes : [...indexes, providerIndex(tenantId, clientId, sid)];
}
