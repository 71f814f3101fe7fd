// Tests the figure of a tenant between two measurements.
import { describe, expect, it } from 'vitest';
import { type Usage, updateUsage } from './usage.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 7, 20, 17, 0, seconds));

describe('what this process writes', () => {
  const usage = (): Usage => ({ used: 100, measured: at(0), walkBegan: null, before: 0, since: 0, isRead: true });

  const write = (known: Usage, bytes: number) => {
    known.used += bytes;
    known.since += bytes;
  };

  it('counts until a walk that began later is complete', () => {
    const known = usage();
    write(known, 10);
    updateUsage(known, { bytes: 100, measured: at(0), walkBegan: at(5) });
    write(known, 20);
    expect(known.used).toBe(130);
    updateUsage(known, { bytes: 100, measured: at(0), walkBegan: at(5) });
    expect(known.used).toBe(130);
    updateUsage(known, { bytes: 110, measured: at(5), walkBegan: null });
    expect(known.used).toBe(130);
    updateUsage(known, { bytes: 110, measured: at(5), walkBegan: at(9) });
    updateUsage(known, { bytes: 130, measured: at(9), walkBegan: null });
    expect(known.used).toBe(130);
  });

  it('does not count twice if another pod’s walk began and ended unnoticed', () => {
    const known = usage();
    write(known, 10);
    updateUsage(known, { bytes: 110, measured: at(5), walkBegan: at(6) });
    expect(known.used).toBe(110);
  });
});
