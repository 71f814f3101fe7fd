// Ends long responses and upgraded connections with their session, and limits how many streams a session, a person, a tenant
// and the process have open. It keeps no session alive.
import prom from 'prom-client';
import { Problem } from '../../service/http/problem.ts';
import { type Claim, createFairQueue } from '../../service/limits/fair-queue.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import type { LiveSession } from '../sessions/live-session.ts';

export interface Streams {
  /**
   * Counts a stream; `end` is called once when the session ends. The function that it answers must be called when the
   * stream is over. Throws Problem `too-many-requests` when the session has as many as it may, `busy` when the person, the
   * tenant or the process has.
   */
  open(session: LiveSession, end: () => void): () => void;
  /** For an exchange that may last: if it does, `end` is called when the session ends. Not counted. */
  watch(session: LiveSession, end: () => void): () => void;
  close(): void;
}

/** Milliseconds between looks at answers that may last. */
const lookInterval = 1_000;

interface Watched {
  since: number;
  /** Undefined when it is over. */
  answer: { session: LiveSession; end: () => void } | undefined;
  stop?: () => void;
}

export interface StreamLimits {
  perSession: number;
  /** Of this process. One tenant may have half of them. */
  total: number;
}

/** A person may have the streams of so many sessions. */
const sessionsOfPerson = 4;

export function createStreams({ perSession, total, metrics }: StreamLimits & { metrics: Metrics }): Streams {
  const counts = new Map<string, number>();
  const shares = createFairQueue({
    slots: { total, perTenant: Math.ceil(total / 2), perMember: perSession * sessionsOfPerson },
    waiting: { total: 0, perTenant: 0, perMember: 0 },
    waitMs: 0,
    detail: '',
    retryAfterSeconds: 0,
  });
  const take = (claim: Claim) => {
    const release = shares.tryTake(claim);
    if (release) return release;
    const headers = { 'Retry-After': '30' };
    throw new Problem('busy', 'This person, tenant or service has too many open streams.', { headers });
  };
  const gauge = new prom.Gauge({
    name: 'token_handler_streams_open',
    help: 'Upgraded connections and event streams that are open',
    registers: [metrics.registry],
  });
  return {
    open(session, end) {
      const { handle, tenantId, user } = session.session;
      const count = counts.get(handle) ?? 0;
      if (count >= perSession)
        throw new Problem('too-many-requests', `The session has ${perSession} open streams, and may have no more.`);
      const release = take({ tenant: tenantId, member: user.id });
      counts.set(handle, count + 1);
      gauge.inc();
      const stop = session.onEnd(end);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        stop();
        release();
        gauge.dec();
        const left = (counts.get(handle) ?? 1) - 1;
        if (left === 0) counts.delete(handle);
        else counts.set(handle, left);
      };
    },
    ...createWatch(),
  };
}

/** Watches exchanges that may last. */
function createWatch(): Pick<Streams, 'watch' | 'close'> {
  // A list, which forgets what is over at the next look: a set that every answer is put into and taken from is made anew
  // all the time, and each old table of it keeps the next alive (decision 0013).
  let watched: Watched[] = [];
  // Most answers are over before the first look, and cost no more than a place in the list.
  const timer = setInterval(() => {
    const now = performance.now();
    watched = watched.filter(({ answer }) => answer !== undefined);
    for (const item of watched)
      if (item.answer && !item.stop && now - item.since > lookInterval)
        item.stop = item.answer.session.onEnd(item.answer.end);
  }, lookInterval / 2);
  timer.unref();

  return {
    watch(session, end) {
      const item: Watched = { answer: { session, end }, since: performance.now() };
      watched.push(item);
      return () => {
        item.answer = undefined;
        item.stop?.();
      };
    },
    close: () => clearInterval(timer),
  };
}
