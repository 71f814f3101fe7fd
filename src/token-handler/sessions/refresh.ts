// Refreshes the tokens of sessions: in the background before the access token expires, and on demand afterward. Across
// all replicas, only one attempt at a time sends a session's refresh token. A refresh token that may have been used is
// never sent again, because the identity provider may treat its reuse as a theft (RFC 9700 section 4.14.2).
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { Problem } from '../../service/http/problem.ts';
import type { FairQueue } from '../../service/limits/fair-queue.ts';
import { auditLog, serviceEvent } from '../../service/operations/audit.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { within } from '../../service/time-limit.ts';
import { Rejection } from '../rejection.ts';
import { type AttemptOptions, RefreshAttempts } from './refresh-attempt.ts';
import { createRefreshMetrics } from './refresh-metrics.ts';
import { createRefreshQueue } from './refresh-queue.ts';
import { type FoundSession, isUsable } from './session.ts';

export interface RefresherOptions
  extends Pick<AttemptOptions, 'tokens' | 'registrations' | 'relyingParty' | 'clock' | 'log'> {
  metrics: Pick<Metrics, 'registry'>;
  sessions: AttemptOptions['sessions'] & { read(handle: string): Promise<FoundSession | undefined> };
  /** Maximum number of concurrent token requests to one realm. */
  refreshConcurrency: number;
}

interface Pause {
  reason: 'unused' | 'client-refused' | 'short-lived';
  /** End of the pause, in milliseconds since 1970. */
  until: number;
}

/** Milliseconds that a request waits for a new access token. */
const longestWait = 5_000;
/** Milliseconds between two reads of a session that another replica refreshes. */
const pollInterval = 200;
/**
 * Milliseconds before the next attempt to refresh a session, after an attempt that did not use the refresh token. A
 * Retry-After header of the identity provider may lengthen the wait.
 */
const pauseTime = 5_000;
const most = 10_000;

export class Refresher {
  readonly #options: RefresherOptions;
  readonly #now: () => number;
  readonly #attempts: RefreshAttempts;
  readonly #running = new Map<string, Promise<void>>();
  readonly #waits = new Map<string, Promise<string>>();
  /** Pauses after failed attempts, keyed by session handle. No attempt starts for a session before its pause ends. */
  readonly #pauses = new LRUCache<string, Pause>({ max: most });

  constructor(options: RefresherOptions) {
    this.#options = options;
    this.#now = () => options.clock().getTime();
    const { registry } = options.metrics;
    const metrics = createRefreshMetrics({ registry, queue: () => queue });
    const queue: FairQueue = createRefreshQueue(options.refreshConcurrency, metrics);
    this.#attempts = new RefreshAttempts({ ...options, queue, metrics });
  }

  /** Starts a refresh in the background, unless an attempt is running or has failed recently. */
  begin(found: FoundSession): void {
    const { handle } = found.session;
    if (found.tokens.refreshToken === undefined || found.state.intent !== undefined) return;
    if (this.#running.has(handle) || this.#attempts.isWithdrawing(handle) || this.#pauseOf(handle)) return;
    this.#run(found).catch((error: unknown) => {
      // The queue has already counted this refusal. The next request of the session begins a refresh again.
      if (error instanceof Problem && error.slug === 'busy') return;
      this.#pause(handle, 'unused');
      this.#options.log.warn({ err: error, session: handle }, 'token refresh could not start');
    });
  }

  /**
   * Returns a valid access token. Waits at most 5 s for a new access token if the old token has expired. Throws Problem
   * `unauthenticated` if the session has ended, and `unavailable` or `busy` if there is no new token yet.
   */
  accessToken({ session: { handle } }: FoundSession): Promise<string> {
    return shared(this.#waits, handle, () => this.#settle(handle));
  }

  /**
   * Ends a session whose access token has expired and whose refresh was interrupted: the replica that may have sent the
   * refresh token writes no more heartbeats. Returns true if this call has ended the session.
   */
  async endIfAbandoned({ session, tokens, state: { intent } }: FoundSession): Promise<boolean> {
    const { handle } = session;
    if (intent === undefined || this.#running.has(handle) || isUsable(tokens, this.#now())) return false;
    if (!(await this.#options.tokens.abandon(handle, intent))) return false;
    this.#attempts.count('abandoned');
    const audit = serviceEvent({
      action: 'session.abandoned',
      by: 'token-handler',
      tenant: session.tenantId,
      id: handle,
    });
    auditLog(this.#options.log).warn(
      { session: handle, audit },
      'session ended: the replica that refreshed its tokens has died',
    );
    // `abandon` leaves the session's index entries, which `end` removes.
    await this.#options.sessions.end(session);
    return true;
  }

  /** Prevents new attempts, and waits until the running attempts have ended, for 4 s at most. */
  async close(): Promise<void> {
    this.#attempts.close();
    await Promise.race([Promise.allSettled(this.#running.values()), sleep(4_000, undefined, { ref: false })]);
  }

  #run(found: FoundSession): Promise<void> {
    const { handle } = found.session;
    return shared(this.#running, handle, async () => {
      const outcome = await this.#attempts.run(found);
      if (outcome?.kind === 'unused') this.#pause(handle, 'unused', outcome.retryAfter);
      if (outcome?.kind === 'client-refused') this.#pause(handle, 'client-refused');
      // Without a pause, one request would refresh again and again until its deadline.
      if (outcome?.kind === 'refreshed' && (outcome.response.expires_in ?? 1) < 1) this.#pause(handle, 'short-lived');
    });
  }

  async #settle(handle: string): Promise<string> {
    const deadline = performance.now() + longestWait;
    for (;;) {
      const found = await this.#options.sessions.read(handle);
      if (!found) throw ended();
      const { tokens, state } = found;
      if (isUsable(tokens, this.#now())) return tokens.accessToken;
      if (tokens.refreshToken === undefined || (await this.endIfAbandoned(found))) throw ended();
      const left = deadline - performance.now();
      if (left <= 0) throw slow();
      const running = this.#running.get(handle);
      const pause = this.#pauseOf(handle);
      if (running) await untilOver(running, left);
      else if (state.intent !== undefined || this.#attempts.isWithdrawing(handle)) await sleep(pollInterval);
      else if (pause) throw this.#noNewToken(pause);
      else await untilOver(this.#run(found), left);
    }
  }

  /** Prevents attempts for a while. `milliseconds` is the minimum duration, as requested by the identity provider. */
  #pause(handle: string, reason: Pause['reason'], milliseconds = 0): void {
    this.#pauses.set(handle, { reason, until: this.#now() + Math.max(pauseTime, milliseconds) });
  }

  #pauseOf(handle: string): Pause | undefined {
    const pause = this.#pauses.get(handle);
    return pause && pause.until > this.#now() ? pause : undefined;
  }

  /**
   * Returns the problem for a request while refreshes of its session are paused. The session continues: it works again
   * when the identity provider responds again, or when an administrator has registered the client again.
   */
  #noNewToken({ reason, until }: Pause): Problem {
    return unavailable(details[reason], Math.ceil((until - this.#now()) / 1_000));
  }
}

const details: Record<Pause['reason'], string> = {
  unused: 'The identity provider cannot be reached at the moment.',
  'client-refused': 'The identity provider no longer accepts this client: an administrator has to register it again.',
  'short-lived': 'The identity provider issued an access token that has already expired.',
};

/** If work is already running for `key`, returns its promise. Otherwise starts `work`. */
function shared<T>(running: Map<string, Promise<T>>, key: string, work: () => Promise<T>): Promise<T> {
  const present = running.get(key);
  if (present) return present;
  const started = work().finally(() => running.delete(key));
  running.set(key, started);
  return started;
}

/** Waits until the attempt has ended. Throws Problem `unavailable` if this takes longer than `milliseconds`. */
async function untilOver(attempt: Promise<void>, milliseconds: number): Promise<void> {
  if ((await within(attempt, milliseconds, 'late')) === 'late') throw slow();
}

function ended(): Rejection {
  return new Rejection('session', 'unauthenticated', 'The session has ended.');
}

function slow(): Problem {
  return unavailable('The identity provider takes long to renew the sign-in.', 2);
}

function unavailable(detail: string, retryAfterSeconds: number): Problem {
  return new Problem('unavailable', detail, { headers: { 'Retry-After': String(retryAfterSeconds) } });
}
