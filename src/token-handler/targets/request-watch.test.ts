// Tests three causes that end a proxied request, besides its client and its upstream: the end of the session, a slow
// body, and a late response.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LiveSession } from '../sessions/session.ts';
import type { RequestBody } from './bodies.ts';
import type { Outgoing, ProxyOptions } from './proxy-options.ts';
import { FirstByteTimer, RequestWatch } from './request-watch.ts';
import type { Streams } from './streams.ts';
import type { PacedBody, TransferRate } from './transfer-rate.ts';

/** Returns a request watch, and the list in which its streams, session and transfer rate record their calls. */
function watching(kind: Partial<Outgoing> = {}) {
  const steps: string[] = [];
  const ends: Record<string, () => void> = {};
  const began = (name: string, end: () => void) => {
    steps.push(name);
    ends[name] = end;
    return () => void steps.push(`stop ${name}`);
  };
  const session = { onEnd: (end: () => void) => began('session at once', end) } as LiveSession;
  const streams: Streams = {
    open: (of, as, end) => began(`${of === session ? 'open' : 'foreign'} ${as}`, end),
    watch: (of, end) => began(of === session ? 'session later' : 'foreign', end),
    close: () => undefined,
  };
  const rate: TransferRate = {
    watch: (body, end) => began(`rate of ${(body as unknown as { name: string }).name}`, end),
    close: () => undefined,
  };
  const outgoing = { session, isStream: false, isUpgrade: false, ...kind } as Outgoing;
  const watch = new RequestWatch({ streams, rate } as ProxyOptions, outgoing, {
    onSessionEnd: () => void steps.push('session ended'),
    onSlow: (direction) => void steps.push(`slow ${direction}`),
  });
  return { watch, steps, ends };
}
const body = (name: string) => ({ name }) as unknown as RequestBody & PacedBody & never;

describe('the end of a session', () => {
  it('ends a request, whether watching began immediately or later', () => {
    for (const [name, begin] of [
      ['session later', (watch: RequestWatch) => watch.session()],
      ['session at once', (watch: RequestWatch) => watch.sessionAtOnce()],
      ['open event-stream', (watch: RequestWatch) => watch.openStream()],
    ] as const) {
      const { watch, steps, ends } = watching();
      begin(watch);
      ends[name]?.();
      expect(steps).toEqual([name, 'session ended']);
    }
  });

  it('is watched once for each request', () => {
    const { watch, steps } = watching();
    watch.session();
    watch.session();
    watch.sessionAtOnce();
    expect(steps).toEqual(['session later']);
    const long = watching();
    long.watch.sessionAtOnce();
    long.watch.sessionAtOnce();
    long.watch.session();
    expect(long.steps).toEqual(['session at once']);
  });

  it('is watched only by the stream after the request has turned out to be one', () => {
    const { watch, steps } = watching();
    watch.session();
    watch.openStream();
    watch.session();
    expect(steps).toEqual(['session later', 'stop session later', 'open event-stream']);
    const upgrade = watching({ isUpgrade: true, isStream: true });
    upgrade.watch.openStream();
    expect(upgrade.steps).toEqual(['open websocket']);
  });
});

describe('the rate of a body', () => {
  it('is watched once in each direction, and ends the request if it is too low', () => {
    const { watch, steps, ends } = watching();
    watch.upload(body('upload'));
    watch.upload(body('upload'));
    watch.download(body('download'));
    watch.download(body('download'));
    expect(steps).toEqual(['rate of upload', 'rate of download']);
    ends['rate of upload']?.();
    ends['rate of download']?.();
    expect(steps.slice(2)).toEqual(['slow upload', 'slow download']);
  });

  it('is not watched for streams, which may be silent for hours', () => {
    const { watch, steps } = watching({ isStream: true });
    watch.upload(body('upload'));
    watch.download(body('download'));
    expect(steps).toEqual([]);
  });
});

describe('a request that is over', () => {
  it('is no longer watched', () => {
    const { watch, steps } = watching();
    watch.close();
    expect(steps).toEqual([]);
    watch.session();
    watch.upload(body('upload'));
    watch.download(body('download'));
    watch.close();
    expect(steps.slice(3)).toEqual(['stop session later', 'stop rate of upload', 'stop rate of download']);
  });
});

describe('the wait for the first byte of a response', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  /** Starts a timer. Returns its `long` and `late` events, each with the seconds after which the event occurred. */
  function waiting(limit: number, isOver = () => true) {
    const began = performance.now();
    const elapsed = () => (performance.now() - began) / 1_000;
    const events: [string, number][] = [];
    const timer = new FirstByteTimer(limit, {
      onLong: () => void events.push(['long', elapsed()]),
      onLate() {
        events.push(['late', elapsed()]);
        return isOver();
      },
    });
    timer.start();
    return { timer, events };
  }

  it('is long after a second, and late at its limit', () => {
    const { events } = waiting(5_000);
    vi.advanceTimersByTime(60_000);
    expect(events).toEqual([
      ['long', 1],
      ['late', 5],
    ]);
  });

  it('is long and late at its limit if that is less than a second', () => {
    const { events } = waiting(400);
    vi.advanceTimersByTime(60_000);
    // Even the shortest timer takes a millisecond.
    expect(events).toEqual([
      ['long', 0.4],
      ['late', 0.401],
    ]);
  });

  it('begins again if the client causes the delay', () => {
    let rounds = 0;
    const { events } = waiting(5_000, () => {
      rounds += 1;
      return rounds === 2;
    });
    vi.advanceTimersByTime(60_000);
    expect(events).toEqual([
      ['long', 1],
      ['late', 5],
      ['long', 6],
      ['late', 10],
    ]);
  });

  it('begins again with each piece of the body that was sent, before and after it is long', () => {
    const { timer, events } = waiting(5_000);
    vi.advanceTimersByTime(900);
    timer.refresh();
    vi.advanceTimersByTime(900);
    expect(events).toEqual([]);
    vi.advanceTimersByTime(100);
    expect(events).toEqual([['long', 1.9]]);
    vi.advanceTimersByTime(3_900);
    timer.refresh();
    vi.advanceTimersByTime(500);
    timer.refresh();
    vi.advanceTimersByTime(60_000);
    expect(events.slice(1)).toEqual([
      ['long', 7.3],
      ['late', 11.3],
    ]);
  });

  it('ends with the response', () => {
    for (const milliseconds of [500, 3_000]) {
      const { timer, events } = waiting(5_000);
      vi.advanceTimersByTime(milliseconds);
      timer.stop();
      const before = events.length;
      vi.advanceTimersByTime(60_000);
      expect(events).toHaveLength(before);
    }
  });

  it('does not begin again when the client sends more of its body after the response has begun', () => {
    for (const milliseconds of [500, 3_000]) {
      const { timer, events } = waiting(5_000);
      vi.advanceTimersByTime(milliseconds);
      timer.stop();
      const before = events.length;
      timer.refresh();
      vi.advanceTimersByTime(60_000);
      expect(events).toHaveLength(before);
    }
  });

  it('does not begin when a piece of the body is sent', () => {
    const timer = new FirstByteTimer(5_000, { onLong: () => expect.unreachable(), onLate: () => expect.unreachable() });
    timer.refresh();
    expect(vi.getTimerCount()).toBe(0);
  });
});
