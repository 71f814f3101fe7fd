// Long answers and upgraded connections: they end with their session, and one session has only so many of them. It keeps no
// session alive.
import prom from 'prom-client';
import type { Metrics } from '../../service/metrics.ts';
import { Problem } from '../../service/problem.ts';
import type { LiveSession } from '../sessions/live-session.ts';

export interface Streams {
  /**
   * Counts a stream; `end` is called once when the session ends. The function that it answers must be called when the
   * stream is over. Throws Problem `too-many-requests` when the session has as many as it may.
   */
  open(session: LiveSession, end: () => void): () => void;
  /** For an answer of unknown length: if it lasts, `end` is called when the session ends. Not counted. */
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

export function createStreams({ perSession, metrics }: { perSession: number; metrics: Metrics }): Streams {
  const counts = new Map<string, number>();
  // A list, which forgets what is over at the next look: a set that every answer is put into and taken from is made anew
  // all the time, and each old table of it keeps the next alive (decision 0013).
  let watched: Watched[] = [];
  const gauge = new prom.Gauge({
    name: 'token_handler_streams_open',
    help: 'Upgraded connections and event streams that are open',
    registers: [metrics.registry],
  });
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
    open(session, end) {
      const { handle } = session.session;
      const count = counts.get(handle) ?? 0;
      if (count >= perSession)
        throw new Problem('too-many-requests', `The session has ${perSession} open streams, and may have no more.`);
      counts.set(handle, count + 1);
      gauge.inc();
      const stop = session.onEnd(end);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        stop();
        gauge.dec();
        const left = (counts.get(handle) ?? 1) - 1;
        if (left === 0) counts.delete(handle);
        else counts.set(handle, left);
      };
    },
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
