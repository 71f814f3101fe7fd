// Runs one attempt to refresh the tokens of a session: waits for a slot, writes the intent to the store, sends the
// refresh token once, and stores the outcome. If the process dies, the intent stays, so no replica sends the token
// again. Each write names the attempt's intent. If the process was paused and another attempt has begun in the
// meantime, late writes therefore change nothing.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { FairQueue } from '../../service/limits/fair-queue.ts';
import type { Logger } from '../../service/operations/log.ts';
import { retryUntilDone } from '../../service/retry.ts';
import type { Registration } from '../clients/registration.ts';
import type { RegistrationStore } from '../clients/registration-store.ts';
import type { RelyingParty } from '../sign-in/relying-party.ts';
import { logFailure } from './refresh-log.ts';
import type { CountedRefresh, RefreshMetrics } from './refresh-metrics.ts';
import { requesterOfSession } from './refresh-queue.ts';
import {
  type FoundSession,
  type RefreshOutcome,
  type Session,
  type TokenSet,
  tokenSetOf,
  withoutRefreshToken,
} from './session.ts';
import type { SealedTokens, TokenStore } from './store.ts';
import { areTokensTooLarge } from './token-size.ts';

export interface AttemptOptions {
  sessions: {
    end(session: Session): Promise<boolean>;
    seal(session: Session, tokens: TokenSet): SealedTokens;
  };
  tokens: TokenStore;
  registrations: Pick<RegistrationStore, 'find'>;
  relyingParty: Pick<RelyingParty, 'refresh'>;
  queue: FairQueue;
  clock: Clock;
  log: Logger;
  metrics: Pick<RefreshMetrics, 'outcomes'>;
}

/** Milliseconds between two heartbeats. The store keeps each heartbeat for five seconds. */
const heartbeatInterval = 1_000;
const backoff = { first: 100, cap: 1_000 };

export class RefreshAttempts {
  readonly #options: AttemptOptions;
  readonly #stop = new AbortController();
  /**
   * Handles of sessions whose refresh intent this replica withdraws, because the store did not confirm it. Their
   * refresh tokens were not sent.
   */
  readonly #unconfirmed = new Set<string>();

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /** True while this replica withdraws an intent that the store has not confirmed but may have written. */
  isWithdrawing(handle: string): boolean {
    return this.#unconfirmed.has(handle);
  }

  count(outcome: CountedRefresh): void {
    this.#options.metrics.outcomes.inc({ outcome });
  }

  /**
   * Refreshes the tokens, stores the outcome, and returns it. Returns undefined if another attempt has begun or the
   * session has ended. Throws Problem `busy` if too many refreshes wait. Throws `unavailable` if the store cannot be
   * reached before the refresh token is sent.
   */
  async run(found: FoundSession): Promise<RefreshOutcome | undefined> {
    const { session, tokens, state } = found;
    const { handle } = session;
    if (tokens.refreshToken === undefined) return undefined;
    const release = await this.#options.queue.take(requesterOfSession(session), this.#stop.signal);
    let stopHeartbeats = () => {};
    try {
      const id = await this.#claim(handle, state);
      if (id === undefined) return undefined;
      stopHeartbeats = this.#beginHeartbeats(handle, id);
      const outcome = await this.#present(session, tokens, tokens.refreshToken);
      release();
      this.count(outcome.kind);
      if (outcome.kind !== 'refreshed') logFailure(this.#options.log, session, outcome);
      await this.#storeOutcome(found, id, outcome);
      return outcome;
    } finally {
      stopHeartbeats();
      release();
    }
  }

  /** Prevents new attempts. Running attempts continue. */
  close(): void {
    this.#stop.abort(new Problem('unavailable', 'The service is stopping.', { headers: { 'Retry-After': '1' } }));
  }

  /** Writes an intent, and returns its id. Returns undefined if another attempt has begun or the session has ended. */
  async #claim(handle: string, { version, limit }: FoundSession['state']): Promise<string | undefined> {
    const id = randomUUID();
    try {
      return (await this.#options.tokens.claim(handle, version, id)) === 'claimed' ? id : undefined;
    } catch (error) {
      void this.#withdraw(handle, id, limit);
      throw error;
    }
  }

  /** Removes an intent that the store may have written although its response did not arrive. */
  async #withdraw(handle: string, id: string, limit: number): Promise<void> {
    this.#unconfirmed.add(handle);
    const { tokens, log } = this.#options;
    await this.#write(limit, () => tokens.conclude(handle, id, this.#now())).catch((error: unknown) =>
      log.warn({ err: error, session: handle }, 'intent of a token refresh not withdrawn'),
    );
    this.#unconfirmed.delete(handle);
  }

  /** Writes heartbeats until the returned function is called. */
  #beginHeartbeats(handle: string, id: string): () => void {
    // A failed heartbeat is not retried, because the next heartbeat follows after a second.
    const beat = () => void this.#options.tokens.heartbeat(handle, id).catch(() => undefined);
    const timer = setInterval(beat, heartbeatInterval);
    timer.unref();
    return () => clearInterval(timer);
  }

  /**
   * Sends the refresh token to the identity provider. Does not send it if the client was registered again, because a
   * new registration cannot use tokens of the old registration. In another realm, the client may have the same id.
   */
  async #present(session: Session, tokens: TokenSet, refreshToken: string): Promise<RefreshOutcome> {
    const { registrations, relyingParty, log } = this.#options;
    const { handle, tenantId, clientId, realm, oidcClientId, user } = session;
    let registration: Registration | undefined;
    try {
      registration = await registrations.find(tenantId, clientId);
    } catch (error) {
      log.warn({ err: error, session: handle }, 'registration for a token refresh could not be read');
      return { kind: 'unused' };
    }
    if (registration?.realm !== realm || registration.oidcClientId !== oidcClientId) return { kind: 'unknown' };
    const outcome = await relyingParty.refresh(registration, refreshToken, { subject: user.id, tokens });
    const isTooLarge = outcome.kind === 'refreshed' && areTokensTooLarge(outcome.response, tokens);
    return isTooLarge ? { kind: 'unknown', isTooLarge } : outcome;
  }

  async #storeOutcome(
    { session, tokens: set, state }: FoundSession,
    id: string,
    outcome: RefreshOutcome,
  ): Promise<void> {
    const { sessions, tokens, log } = this.#options;
    const { handle } = session;
    const conclude = (limit: number, sealed?: SealedTokens) =>
      this.#write(limit, async () => {
        if (await tokens.conclude(handle, id, this.#now(), sealed)) return;
        this.count('late');
        log.info(
          { session: handle, outcome: outcome.kind },
          'token refresh not stored: the session has ended or has other tokens',
        );
      });
    const replace = (next: TokenSet) => {
      const sealed = sessions.seal(session, next);
      return conclude(sealed.limit, sealed);
    };
    try {
      if (outcome.kind === 'refreshed') await replace(tokenSetOf(outcome.response, this.#now(), set));
      else if (outcome.kind === 'unknown') await replace(withoutRefreshToken(set));
      else if (outcome.kind === 'refused' || outcome.kind === 'foreign')
        await this.#write(state.limit, () => sessions.end(session));
      else await conclude(state.limit);
    } catch (error) {
      log.error({ err: error, session: handle, outcome: outcome.kind }, 'token refresh not stored');
    }
  }

  /**
   * Writes to the store. While the store is unavailable, retries until the time `until`, at which the session ends
   * anyway.
   */
  async #write(until: number, work: () => Promise<unknown>): Promise<void> {
    const onFailure = (error: unknown) => {
      if (this.#stop.signal.aborted || this.#now() > until || !(error instanceof Problem)) throw error;
    };
    await retryUntilDone(async () => void (await work()), { backoff, onFailure });
  }

  #now(): number {
    return this.#options.clock().getTime();
  }
}
