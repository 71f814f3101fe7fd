// Refreshes the tokens of sessions, each set by one attempt among all replicas. Before a refresh token is presented, the
// intent to do so is written; a token whose use is in doubt is never presented again, because an access service that
// sees a used one a second time may take it for stolen (RFC 9700 section 4.14.2). A session that has ended stays ended.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Session } from './session.ts';
import type { FoundSession, Sessions } from './sessions.ts';
import type { SealedTokens, TokenStore } from './store.ts';
import { isRefreshDue, type TokenAnswer, type TokenSet, tokenSetOf, withoutRefreshToken } from './token-set.ts';

/**
 * - `refused`: the access service does not take the token (any more)
 * - `unused`: the token was certainly not used: the request was never sent, or failed with a complete answer
 * - `client-refused`: nor here; the access service does not take the credentials of the client (any more)
 * - `unknown`: it may have been used
 */
export type RefreshOutcome =
  | { kind: 'refreshed'; answer: TokenAnswer }
  | { kind: 'refused' | 'unused' | 'client-refused' | 'unknown' };

/** Presents the refresh token once. Does not throw. */
export type RefreshTokens = (session: Session, refreshToken: string) => Promise<RefreshOutcome>;

export interface Refresher {
  /** Starts a refresh in the background where one is due. The token that there is stays good for now. */
  begin(found: FoundSession): void;
  /**
   * For a session whose access token has expired: resolves with a set that is valid, undefined when the session has
   * ended. Throws Problem `unavailable` when neither can be said.
   */
  settle(found: FoundSession): Promise<TokenSet | undefined>;
  /** Waits for what is under way, at most 4 s. */
  close(): Promise<void>;
}

export interface RefresherOptions {
  sessions: Sessions;
  tokens: TokenStore;
  refresh: RefreshTokens;
  clock: Clock;
  log: Logger;
}

/** Milliseconds after which an intent has no attempt behind it any more: the longest request, and some. */
const longestAttempt = 40_000;
/** Milliseconds between attempts whose token was not used. */
const pause = 5_000;

/** Whether `set` has an access token to send now. */
export function isUsable(set: TokenSet, now: number): boolean {
  return set.accessExpiry - now > Math.min(1_000, (set.accessExpiry - set.accessIssued) / 10);
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { sessions, log } = options;
  const now = () => options.clock().getTime();
  const running = new Map<string, Promise<void>>();
  const settling = new Map<string, Promise<TokenSet | undefined>>();
  const pauses = createPauses(now);
  const attempt = createAttempt(options, pauses.begin);

  function run(found: FoundSession): Promise<void> {
    const { handle } = found.session;
    const present = running.get(handle);
    if (present) return present;
    const started = attempt(found).finally(() => running.delete(handle));
    running.set(handle, started);
    return started;
  }

  async function settle({ session: { handle } }: FoundSession): Promise<TokenSet | undefined> {
    const started = now();
    for (;;) {
      const found = await sessions.read(handle);
      if (!found) return undefined;
      const { tokens, stored, session } = found;
      if (isUsable(tokens, now())) return tokens;
      const own = running.get(handle);
      if (own) await own;
      else if (isOver(found, now(), now() - started)) {
        await sessions.end(session);
        return undefined;
      } else if (stored.intent && !attempt.owns(handle, stored.intent.id)) await delay(150);
      else {
        const paused = pauses.of(handle);
        if (paused) throw noNewToken(paused);
        await run(found);
      }
    }
  }

  return {
    begin(found) {
      const { session, tokens, stored } = found;
      const isOpen =
        tokens.refreshToken !== undefined && (!stored.intent || attempt.owns(session.handle, stored.intent.id));
      if (!isOpen || !isRefreshDue(tokens, now()) || running.has(session.handle) || pauses.of(session.handle)) return;
      run(found).catch((error: unknown) => {
        pauses.begin(session.handle, 'unused');
        log.warn({ err: error, session: session.handle }, 'a refresh could not begin');
      });
    },
    settle(found) {
      const { handle } = found.session;
      const present = settling.get(handle);
      if (present) return present;
      const started = settle(found).finally(() => settling.delete(handle));
      settling.set(handle, started);
      return started;
    },
    async close() {
      attempt.stop();
      await Promise.race([Promise.allSettled(running.values()), delay(4_000, undefined, { ref: false })]);
    },
  };
}

/** After an attempt whose token was not used. */
interface Pause {
  /** Milliseconds since 1970 */
  until: number;
  why: 'unused' | 'client-refused';
}

function createPauses(now: () => number) {
  const pauses = new LRUCache<string, Pause>({ max: 10_000 });
  return {
    begin: (handle: string, why: Pause['why']) => void pauses.set(handle, { until: now() + pause, why }),
    of(handle: string): Pause | undefined {
      const found = pauses.get(handle);
      return found && found.until > now() ? found : undefined;
    },
  };
}

/** With the access token expired: whether none will follow. An intent is watched a while, whatever its age. */
function isOver({ tokens, stored }: FoundSession, now: number, watched: number): boolean {
  if (tokens.refreshToken === undefined) return true;
  return stored.intent !== undefined && now - stored.intent.since > longestAttempt && watched > 2_000;
}

interface Attempt {
  /** One attempt to refresh this set. Throws Problem `unavailable` when the store cannot be had before it began. */
  (found: FoundSession): Promise<void>;
  /** Whether the intent is of an attempt here whose claim the store did not confirm: it presented nothing yet. */
  owns(handle: string, intentId: string): boolean;
  stop(): void;
}

function createAttempt(
  { sessions, tokens, refresh, clock, log }: RefresherOptions,
  rest: (handle: string, why: Pause['why']) => void,
) {
  const now = () => clock().getTime();
  const unconfirmed = new LRUCache<string, string>({ max: 10_000 });
  let isStopped = false;

  /** What became known must reach the store: until it does, or until it does not matter any more. */
  async function write(until: number, work: () => Promise<unknown>): Promise<void> {
    for (let wait = 100; ; wait = Math.min(wait * 2, 1_000)) {
      try {
        await work();
        return;
      } catch (error) {
        if (isStopped || now() > until || !(error instanceof Problem)) throw error;
        await delay(wait);
      }
    }
  }

  async function conclude({ session, tokens: set, stored }: FoundSession, id: string, outcome: RefreshOutcome) {
    const { handle } = session;
    const replace = (next: SealedTokens) => write(next.limit, () => tokens.replace(handle, id, next, now()));
    if (outcome.kind === 'refreshed') await replace(sessions.seal(session, tokenSetOf(outcome.answer, now(), set)));
    else if (outcome.kind === 'refused') await write(stored.limit, () => sessions.end(session));
    else if (outcome.kind === 'unknown') await replace(sessions.seal(session, withoutRefreshToken(set)));
    else {
      rest(handle, outcome.kind);
      await write(stored.limit, () => tokens.release(handle, id));
    }
  }

  async function attempt(found: FoundSession): Promise<void> {
    const { session, tokens: set, stored } = found;
    const { handle } = session;
    if (set.refreshToken === undefined) return;
    const id = unconfirmed.get(handle) ?? randomUUID();
    unconfirmed.set(handle, id);
    const claim = await tokens.claim(handle, stored.version, { id, since: now() });
    unconfirmed.delete(handle);
    if (claim !== 'claimed') return;
    const outcome = await refresh(session, set.refreshToken);
    tell(log, session, outcome);
    await conclude(found, id, outcome).catch((error: unknown) => {
      log.error({ err: error, session: handle, outcome: outcome.kind }, 'the outcome of a refresh was not stored');
    });
  }
  const owns = (handle: string, intentId: string) => unconfirmed.get(handle) === intentId;
  const stop = () => {
    isStopped = true;
  };
  return Object.assign(attempt, { owns, stop }) satisfies Attempt;
}

function tell(log: Logger, { handle, tenantId, clientId, oidcClientId }: Session, { kind }: RefreshOutcome): void {
  if (kind === 'refreshed') return;
  const about = { session: handle, tenant: tenantId, client: clientId, outcome: kind };
  if (kind !== 'client-refused') log.warn(about, 'tokens were not refreshed');
  else
    log.error(
      { ...about, oidcClientId },
      'the access service refuses the credentials of a client: put them right there, or register the client again',
    );
}

/** The session stays: the client may be put right, and nobody should have to sign in again for that. */
function noNewToken({ why }: Pause): Problem {
  const detail =
    why === 'unused'
      ? 'The access service cannot be reached at the moment.'
      : 'The access service does not accept this client any more: an administrator has to register it again.';
  return new Problem('unavailable', detail, { headers: { 'Retry-After': '5' } });
}
