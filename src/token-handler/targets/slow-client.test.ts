// Tests the minimum rate of bodies: 1,024 B/s over windows of 12 s. The clock is a fake, and the test controls the
// progress of the bodies.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTransferRate, type PacedBody, type TransferRate } from './transfer-rate.ts';

const least = 1_024;
const window = 12_000;
let rate: TransferRate;
beforeEach(() => {
  vi.useFakeTimers();
  rate = createTransferRate({ least, window });
});
afterEach(() => {
  rate.close();
  vi.useRealTimers();
});

/** Returns a body that waits for its client. The client sends `perSecond` bytes in each second. */
function body(perSecond: number) {
  const paced = {
    passed: 0,
    isWaiting: true,
    perSecond,
    looks: 0,
    look() {
      if (paced.looks > 0 && paced.isWaiting) paced.passed += paced.perSecond;
      paced.looks += 1;
    },
  };
  return paced satisfies PacedBody;
}

/** Watches a body. Returns the times, in seconds, at which the watch ended the body. */
function watched(of: PacedBody): { ended: number[]; stop: () => void } {
  const ended: number[] = [];
  const began = performance.now();
  return { ended, stop: rate.watch(of, () => ended.push((performance.now() - began) / 1_000)) };
}

describe('a body whose client is slow', () => {
  it.each([0, 1, least - 1])('of %i B/s is ended after one window, once', (perSecond) => {
    const { ended } = watched(body(perSecond));
    vi.advanceTimersByTime(window - 1);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(ended).toEqual([12]);
    vi.advanceTimersByTime(10 * window);
    expect(ended).toEqual([12]);
  });

  it.each([least, least + 1, 1_000_000])('of %i B/s is never ended', (perSecond) => {
    const { ended } = watched(body(perSecond));
    vi.advanceTimersByTime(10 * window);
    expect(ended).toEqual([]);
  });

  it('is judged by the last window only, so that a fast beginning does not help for long', () => {
    const slow = body(1_000_000);
    const { ended } = watched(slow);
    vi.advanceTimersByTime(10 * window);
    slow.perSecond = 0;
    vi.advanceTimersByTime(window - 1);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(ended).toEqual([132]);
  });

  it('is judged six times in a window', () => {
    const slow = body(1_000_000);
    const { ended } = watched(slow);
    // The client stops one second after a measurement. The proxy measures every two seconds.
    vi.advanceTimersByTime(10 * window + 1_000);
    slow.perSecond = 0;
    vi.advanceTimersByTime(10 * window);
    expect(ended).toEqual([134]);
  });

  it('may pause for less than a window if it then catches up', () => {
    const bursts = body(0);
    const { ended } = watched(bursts);
    for (let burst = 0; burst < 10; burst += 1) {
      vi.advanceTimersByTime(window - 1_000);
      bursts.passed += (least * window) / 1_000;
      vi.advanceTimersByTime(1_000);
    }
    expect(ended).toEqual([]);
  });

  it('is timed only while the proxy waits for the client', () => {
    const slow = body(0);
    const { ended } = watched(slow);
    vi.advanceTimersByTime(window - 1_000);
    slow.isWaiting = false;
    vi.advanceTimersByTime(10 * window);
    expect(ended).toEqual([]);
    slow.isWaiting = true;
    vi.advanceTimersByTime(1_000);
    expect(ended).toEqual([132]);
  });

  it('is judged separately from other bodies', () => {
    const [first, fast, second] = [watched(body(0)), watched(body(least)), watched(body(0))];
    vi.advanceTimersByTime(2 * window);
    expect([first.ended, fast.ended, second.ended]).toEqual([[12], [], [12]]);
  });

  it('is not ended once it is complete', () => {
    const { ended, stop } = watched(body(0));
    const other = watched(body(0));
    vi.advanceTimersByTime(window - 1_000);
    stop();
    vi.advanceTimersByTime(2 * window);
    expect([ended, other.ended]).toEqual([[], [12]]);
  });

  it('is not ended if the end of another body has ended it', () => {
    const stops: (() => void)[] = [];
    rate.watch(body(0), () => stops[0]?.());
    const { ended, stop } = watched(body(0));
    stops.push(stop);
    vi.advanceTimersByTime(2 * window);
    expect(ended).toEqual([]);
  });

  it('is not looked at after it is complete', () => {
    const paced = body(least);
    const { stop } = watched(paced);
    stop();
    vi.advanceTimersByTime(window);
    expect(paced.looks).toBe(1);
  });

  it('is not ended because this process runs a timer late', () => {
    const { ended } = watched(body(0));
    vi.advanceTimersByTime(1_000);
    // Simulates a process that is paused for an hour. When the timer then runs, only two intervals of the hour count.
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
    vi.advanceTimersByTime(10_000);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1_000);
    clock.mockRestore();
    expect(ended).toHaveLength(1);
  });

  it('is judged over a whole window, also after late timers', () => {
    const slow = body(1_000_000);
    const { ended } = watched(slow);
    const now = performance.now.bind(performance);
    let late = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + late);
    vi.advanceTimersByTime(1_000);
    late += 60_000;
    vi.advanceTimersByTime(1_000);
    // Three seconds of waiting have counted so far. From now on, the client sends nothing.
    slow.perSecond = 0;
    vi.advanceTimersByTime(1_000);
    late += 60_000;
    vi.advanceTimersByTime(1_000 + 6_000 + 3_000);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1_000);
    clock.mockRestore();
    expect(ended).toHaveLength(1);
  });

  it('counts only bytes that passed since it has been watched', () => {
    const slow = body(0);
    slow.passed = 1_000_000;
    const { ended } = watched(slow);
    vi.advanceTimersByTime(window);
    expect(ended).toEqual([12]);
  });

  it('may be one that counts its bytes itself', () => {
    const { ended } = watched({ passed: 0, isWaiting: true });
    vi.advanceTimersByTime(window);
    expect(ended).toEqual([12]);
  });
});

describe('the check of all bodies', () => {
  it('runs each second, or six times in a short window', () => {
    const paced = body(least);
    watched(paced);
    vi.advanceTimersByTime(10_000);
    expect(paced.looks).toBe(1 + 10);
    const hasty = createTransferRate({ least, window: 600 });
    const other = body(0);
    const end = vi.fn();
    hasty.watch(other, end);
    vi.advanceTimersByTime(599);
    expect([other.looks, end.mock.calls.length]).toEqual([1 + 5, 0]);
    vi.advanceTimersByTime(1);
    expect(end).toHaveBeenCalledOnce();
    hasty.close();
  });

  it('stops when the process ends', () => {
    const { ended } = watched(body(0));
    rate.close();
    vi.advanceTimersByTime(10 * window);
    expect([ended, vi.getTimerCount()]).toEqual([[], 0]);
  });
});

describe('a minimum rate of 0', () => {
  it('ends no body', () => {
    const free = createTransferRate({ least: 0, window });
    const end = vi.fn();
    free.watch(body(0), end);
    vi.advanceTimersByTime(10 * window);
    expect(end).not.toHaveBeenCalled();
    free.close();
  });
});
