// Ends long responses and upgraded connections when their session ends, and limits the number of open streams of a
// session, a person, a tenant and the process. A stream does not extend its session.
import { Problem } from '../../service/http/problem.ts';
import { FairQueue, type Requester } from '../../service/limits/fair-queue.ts';
import type { LiveSession } from '../sessions/session.ts';
import type { StreamKind, TargetMetrics } from './target-metrics.ts';

export interface Streams {
  /**
   * Counts a stream, and calls `end` once when the session ends. Call the returned function when the stream is over.
   * Throws Problem `too-many-requests` if the session's limit is reached, and `busy` if the limit of the person, of the
   * tenant or of the process is reached.
   */
  open(session: LiveSession, kind: StreamKind, end: () => void): () => void;
  /**
   * Watches a request without counting it as a stream. If the request runs for longer than a second, calls `end` when
   * the session ends.
   */
  watch(session: LiveSession, end: () => void): () => void;
  close(): void;
}

/** Milliseconds after which a running request counts as long. */
const lookInterval = 1_000;

interface Watched {
  since: number;
  /** Undefined when the request is over. */
  request: { session: LiveSession; end: () => void } | undefined;
  stop?: () => void;
}

export interface StreamLimits {
  perSession: number;
  /** Maximum number of open streams of this process. One tenant may have half of this number. */
  total: number;
}

/** The stream limit of a person is the stream limit of a session times this number. */
const sessionsOfPerson = 4;

export interface StreamsOptions extends StreamLimits {
  metrics: Pick<TargetMetrics, 'openStreams'>;
}

export function createStreams({ perSession, total, metrics }: StreamsOptions): Streams {
  const counts = new Map<string, number>();
  const shares = new FairQueue({
    slots: { total, perTenant: Math.ceil(total / 2), perMember: perSession * sessionsOfPerson },
    waiting: { total: 0, perTenant: 0, perMember: 0 },
    waitMs: 0,
    detail: '',
    retryAfterSeconds: 0,
  });
  const take = (requester: Requester) => {
    const release = shares.tryTake(requester);
    if (release) return release;
    const headers = { 'Retry-After': '30' };
    throw new Problem('busy', 'This person, tenant or service has too many open streams.', { headers });
  };
  const gauges = {
    websocket: metrics.openStreams.labels('websocket'),
    'event-stream': metrics.openStreams.labels('event-stream'),
  };
  for (const gauge of Object.values(gauges)) gauge.set(0);
  return {
    open(session, kind, end) {
      const { handle, tenantId, user } = session.session;
      const count = counts.get(handle) ?? 0;
      if (count >= perSession)
        throw new Problem('too-many-requests', `The session has ${perSession} open streams, and cannot have more.`);
      const release = take({ tenant: tenantId, member: user.id });
      counts.set(handle, count + 1);
      gauges[kind].inc();
      const stop = session.onEnd(end);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        stop();
        release();
        gauges[kind].dec();
        const left = (counts.get(handle) ?? 1) - 1;
        if (left === 0) counts.delete(handle);
        else counts.set(handle, left);
      };
    },
    ...createWatch(),
  };
}

/** Creates the function `watch`, which watches the sessions of requests that may last long. */
function createWatch(): Pick<Streams, 'watch' | 'close'> {
  // Uses an array, from which the timer removes finished requests. A Set would rebuild its table after every few
  // requests, and each old table keeps the next one in memory (decision 0013).
  let watched: Watched[] = [];
  // Most requests are over before the timer runs. Such requests cost only an entry in the array.
  const timer = setInterval(() => {
    const now = performance.now();
    watched = watched.filter(({ request }) => request !== undefined);
    for (const item of watched)
      if (item.request && !item.stop && now - item.since > lookInterval)
        item.stop = item.request.session.onEnd(item.request.end);
  }, lookInterval / 2);
  timer.unref();

  return {
    watch(session, end) {
      const item: Watched = { request: { session, end }, since: performance.now() };
      watched.push(item);
      return () => {
        item.request = undefined;
        item.stop?.();
      };
    },
    close: () => clearInterval(timer),
  };
}
