// Tests the limits of lookups with a scripted resolver and a fake clock. token-handler/targets/upstream-lookups.test.ts
// tests them with connections.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Answer, createSystemLookups } from '../../../test/support/system-lookups.ts';
import { HostLookups, isLookupFailure } from './host-lookups.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function start(answers: Record<string, Answer>, slots = { total: 2, perTenant: 1 }) {
  const system = createSystemLookups(8, answers);
  let refused = 0;
  const lookups = new HostLookups({ slots, lookup: system.lookup, onRefused: () => (refused += 1) });
  const find = (host: string, tenant = 'town', all = true) =>
    new Promise((resolve, reject) => {
      const lookup = lookups.lookupFor(() => tenant);
      lookup(host, { all }, (error, address, family) =>
        error ? reject(error) : resolve(all ? address : [address, family]),
      );
    });
  return { system, find, refused: () => refused };
}
const codeOf = (finding: Promise<unknown>) => finding.then(String, (error) => error.code ?? error.slug);

describe('a lookup', () => {
  it('gives all addresses, or the first one to connections that try only one', async () => {
    const { find } = start({ 'a.example': '192.0.2.1' });
    const found = [find('a.example'), find('b.example').catch(isLookupFailure), find('a.example', 'city', false)];
    await vi.runAllTimersAsync();
    expect(await Promise.all(found)).toEqual([[{ address: '192.0.2.1', family: 4 }], true, ['192.0.2.1', 4]]);
  });

  it('that takes longer than seven seconds fails, and keeps its slot until the system has ended it', async () => {
    const { find, system, refused } = start({ 'silent.example': 'silent', 'a.example': '192.0.2.1' });
    const silent = codeOf(find('silent.example'));
    await vi.advanceTimersByTimeAsync(7_000);
    expect(await silent).toBe('ETIMEOUT');
    expect(await codeOf(find('silent.example', 'city'))).toBe('ETIMEOUT');
    const waiting = codeOf(find('a.example'));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await waiting).toBe('busy');
    expect([system.asked, refused()]).toEqual([['silent.example'], 1]);
    system.endAll();
    const later = find('a.example');
    await vi.runAllTimersAsync();
    expect(await later).toEqual([{ address: '192.0.2.1', family: 4 }]);
  });

  it('of a further host waits while the tenant has another one running; other tenants need not wait', async () => {
    const { find, system } = start({ 'silent.example': 'silent' });
    const all = [find('silent.example'), find('a.example'), find('a.example'), find('b.example', 'city')].map(codeOf);
    await vi.advanceTimersByTimeAsync(10);
    expect(system.asked).toEqual(['silent.example', 'b.example']);
    system.endAll();
    await vi.runAllTimersAsync();
    expect(await Promise.all(all)).toEqual(['ENOTFOUND', 'ENOTFOUND', 'ENOTFOUND', 'ENOTFOUND']);
    expect(system.asked).toEqual(['silent.example', 'b.example', 'a.example']);
  });
});
