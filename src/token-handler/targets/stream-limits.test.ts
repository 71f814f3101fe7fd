// Tests the limits of open streams, and when the end of the session ends a long request. The clock is a fake.
import prom from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Problem } from '../../service/http/problem.ts';
import type { LiveSession } from '../sessions/session.ts';
import { createStreams, type StreamLimits, type Streams } from './streams.ts';
import { createTargetMetrics, type StreamKind } from './target-metrics.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Returns a session that the test can end. */
function sessionOf({ handle = 'session', tenantId = 'town', user = 'ada' } = {}) {
  const listeners = new Set<() => void>();
  const live = {
    session: { handle, tenantId, user: { id: user } },
    accessToken: async () => 'token',
    onEnd(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  } as unknown as LiveSession;
  const end = () => {
    for (const listener of listeners) listener();
  };
  return { live, listeners, end };
}

function start(limits: Partial<StreamLimits> = {}) {
  const { openStreams } = createTargetMetrics({ registry: new prom.Registry(), namesTargets: false });
  const streams = createStreams({ perSession: 2, total: 100, ...limits, metrics: { openStreams } });
  const open = async () =>
    Object.fromEntries((await openStreams.get()).values.map(({ labels, value }) => [labels.kind, value]));
  return { streams, open };
}

const slugOf = (act: () => unknown) => {
  try {
    act();
    return 'opened';
  } catch (error) {
    const { slug, headers } = error as Problem;
    return [slug, headers['Retry-After']];
  }
};
const nothing = () => undefined;
const openIn = (streams: Streams, session = sessionOf(), kind: StreamKind = 'websocket') =>
  streams.open(session.live, kind, nothing);
const busy = ['busy', '30'];

describe('the open streams of a session', () => {
  it('are limited: one more is refused until one of them ends', () => {
    const { streams } = start();
    const closeFirst = openIn(streams);
    const closeSecond = openIn(streams, sessionOf(), 'event-stream');
    expect(slugOf(() => openIn(streams))).toEqual(['too-many-requests', undefined]);
    expect(slugOf(() => openIn(streams, sessionOf({ handle: 'other' })))).toBe('opened');
    closeFirst();
    const closeThird = openIn(streams);
    expect(slugOf(() => openIn(streams))).toEqual(['too-many-requests', undefined]);
    for (const close of [closeSecond, closeThird]) close();
    openIn(streams);
    openIn(streams);
    expect(slugOf(() => openIn(streams))).toEqual(['too-many-requests', undefined]);
  });

  it('are counted by kind, once each', async () => {
    const { streams, open } = start({ perSession: 9 });
    expect(await open()).toEqual({ websocket: 0, 'event-stream': 0 });
    const close = openIn(streams);
    openIn(streams, sessionOf(), 'event-stream');
    openIn(streams, sessionOf(), 'event-stream');
    expect(await open()).toEqual({ websocket: 1, 'event-stream': 2 });
    close();
    close();
    expect(await open()).toEqual({ websocket: 0, 'event-stream': 2 });
  });

  it('free only one slot if one of them is closed twice', () => {
    const { streams } = start();
    const close = openIn(streams);
    openIn(streams);
    close();
    close();
    expect(slugOf(() => openIn(streams))).toBe('opened');
    expect(slugOf(() => openIn(streams))).toEqual(['too-many-requests', undefined]);
  });
});

describe('the open streams of a person', () => {
  it('are limited to as many as four sessions may have', () => {
    const { streams } = start({ perSession: 1 });
    const sessions = [1, 2, 3, 4, 5].map((nth) => sessionOf({ handle: `session ${nth}` }));
    const closers = sessions.slice(0, 4).map((session) => openIn(streams, session));
    expect(slugOf(() => openIn(streams, sessions[4]))).toEqual(busy);
    expect(slugOf(() => openIn(streams, sessionOf({ handle: 'b', user: 'grace' })))).toBe('opened');
    expect(slugOf(() => openIn(streams, sessionOf({ handle: 'c', tenantId: 'other town' })))).toBe('opened');
    closers[0]?.();
    expect(slugOf(() => openIn(streams, sessions[4]))).toBe('opened');
  });

  it('that are refused are not counted for the session', () => {
    const { streams } = start({ perSession: 1, total: 2 });
    const [one, other] = [sessionOf(), sessionOf({ handle: 'other', user: 'grace' })];
    const close = openIn(streams, one);
    expect(slugOf(() => openIn(streams, other))).toEqual(busy);
    close();
    expect(slugOf(() => openIn(streams, other))).toBe('opened');
  });
});

describe('the open streams of a process', () => {
  it.each([
    [6, 3],
    [7, 4],
  ])('are limited to %i, of which one tenant may have half, rounded up: %i', (total, half) => {
    const { streams } = start({ perSession: 1, total });
    const of = (tenantId: string, nth: number) => sessionOf({ handle: `${tenantId} ${nth}`, tenantId, user: `${nth}` });
    for (let nth = 0; nth < half; nth += 1) openIn(streams, of('town', nth));
    expect(slugOf(() => openIn(streams, of('town', half)))).toEqual(busy);
    for (let nth = half; nth < total; nth += 1) openIn(streams, of(`town ${nth}`, nth));
    expect(slugOf(() => openIn(streams, of('last town', total)))).toEqual(busy);
  });
});

describe('a stream', () => {
  it('ends immediately with its session, unless it was closed before', () => {
    const { streams } = start();
    const session = sessionOf();
    const ended: string[] = [];
    streams.open(session.live, 'websocket', () => ended.push('first'));
    const close = streams.open(session.live, 'websocket', () => ended.push('second'));
    close();
    session.end();
    expect(ended).toEqual(['first']);
  });
});

describe('a request that may be long', () => {
  it('is watched for the end of its session after it has lasted longer than a second', () => {
    const { streams } = start();
    const session = sessionOf();
    const end = vi.fn();
    vi.advanceTimersByTime(10_000);
    streams.watch(session.live, end);
    // The timer that looks for long requests runs every half second.
    vi.advanceTimersByTime(1_000);
    expect(session.listeners.size).toBe(0);
    vi.advanceTimersByTime(499);
    expect(session.listeners.size).toBe(0);
    vi.advanceTimersByTime(1);
    expect([...session.listeners]).toEqual([end]);
    // `watch` registers its listener only once.
    const registered = vi.spyOn(session.live, 'onEnd');
    vi.advanceTimersByTime(5_000);
    expect(registered).not.toHaveBeenCalled();
    session.end();
    expect(end).toHaveBeenCalledOnce();
  });

  it('is not watched if it is over before that', () => {
    const { streams } = start();
    const session = sessionOf();
    const other = sessionOf({ handle: 'other' });
    const stop = streams.watch(session.live, nothing);
    streams.watch(other.live, nothing);
    vi.advanceTimersByTime(1_000);
    stop();
    vi.advanceTimersByTime(5_000);
    expect([session.listeners.size, other.listeners.size]).toEqual([0, 1]);
  });

  it('that is over is no longer watched', () => {
    const { streams } = start();
    const session = sessionOf();
    const stop = streams.watch(session.live, nothing);
    vi.advanceTimersByTime(2_000);
    expect(session.listeners.size).toBe(1);
    stop();
    expect(session.listeners.size).toBe(0);
    vi.advanceTimersByTime(2_000);
    expect(session.listeners.size).toBe(0);
  });

  it('is not watched after the process has closed its streams, and no timer is left', () => {
    const { streams } = start();
    const session = sessionOf();
    streams.watch(session.live, nothing);
    streams.close();
    vi.advanceTimersByTime(5_000);
    expect([session.listeners.size, vi.getTimerCount()]).toEqual([0, 0]);
  });

  it('does not count as a stream', async () => {
    const { streams, open } = start({ perSession: 1, total: 1 });
    streams.watch(sessionOf().live, nothing);
    expect(await open()).toEqual({ websocket: 0, 'event-stream': 0 });
    expect(slugOf(() => openIn(streams))).toBe('opened');
  });
});
