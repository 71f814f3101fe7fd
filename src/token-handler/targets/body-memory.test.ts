// Tests how much memory bodies may use, and when the buffers of forwarded chunks are collected.
import { GCProfiler, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { createPassingBuffers, createReadAhead } from './body-memory.ts';

const mebibyte = 1_048_576;

describe('the budget for reading ahead', () => {
  it('gives one body 2 MiB at a time, and 16 MiB in all', () => {
    const { take } = createReadAhead();
    let held = 0;
    for (let more = take(held); more > 0; more = take(held)) {
      expect(more).toBe(2 * mebibyte);
      held += more;
    }
    expect(held).toBe(16 * mebibyte);
    expect(take(16 * mebibyte - 1)).toBe(2 * mebibyte);
  });

  it('is 64 MiB for all bodies together', () => {
    const { take, giveBack } = createReadAhead();
    let taken = 0;
    for (let more = take(0); more > 0; more = take(0)) taken += more;
    expect(taken).toBe(64 * mebibyte);
    giveBack(2 * mebibyte - 1);
    expect(take(0)).toBe(0);
    giveBack(1);
    expect([take(0), take(0)]).toEqual([2 * mebibyte, 0]);
  });
});

/** Returns the kinds of garbage collections that happen while `work` runs. */
function collections(work: () => void): string[] {
  const profiler = new GCProfiler();
  profiler.start();
  work();
  return profiler.stop()?.statistics.map(({ gcType }) => gcType) ?? [];
}

describe('the buffers of forwarded chunks', () => {
  const chunk = 16_384;
  const chunks = (count: number, bytes = chunk) => {
    for (let nth = 0; nth < count; nth += 1) buffers.note(bytes);
  };
  const buffers = createPassingBuffers();

  it('are collected after each 16 MiB, without a full collection', () => {
    // Collects the garbage of other test files in this process, so that V8 does not collect it during the test.
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    for (let round = 0; round < 2; round += 1) {
      expect(collections(() => chunks(1_023))).toEqual([]);
      expect(collections(() => chunks(1))).toEqual(['Scavenge']);
    }
  });

  it('are left to V8 if they are smaller than 16 KiB', () => {
    expect(collections(() => chunks(5_000, chunk - 1))).toEqual([]);
  });
});
