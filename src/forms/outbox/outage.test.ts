// Tests when a service counts as down, and when it is probed.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PlatformError } from '../../platform/platform-error.ts';
import { retryDelay } from '../../service/retry.ts';
import { causeOf } from './failure.ts';
import { createOutage } from './outage.ts';

const service = 'events';
const overloaded = new PlatformError(service, 'failed', { upstreamStatus: 503 });
const broken = new PlatformError(service, 'failed', { upstreamStatus: 500 });
const refused = new PlatformError(service, 'rejected', { upstreamStatus: 400 });

// The longest wait that is possible.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(1));
afterEach(() => void vi.restoreAllMocks());

function world() {
  let now = 0;
  const options = { service, clock: () => new Date(now), backoff: { first: 1_000, cap: 30_000 } };
  const outage = createOutage(options);
  const fail = (count: number, error: unknown, tenantId = 'bay') =>
    Array.from({ length: count }, () => outage.failed(tenantId, error));
  const advance = (milliseconds: number) => {
    now += milliseconds;
  };
  return { outage, fail, advance };
}

it('a service is down after five consecutive failures', () => {
  const { outage, fail, advance } = world();
  fail(4, overloaded);
  expect(outage.state()).toBe('none');
  fail(3, overloaded);
  expect(outage.state()).toBe('down');
  advance(999);
  expect(outage.state()).toBe('down');
  advance(1);
  expect(outage.state()).toBe('probe');
});

it('a success between failures shows that the service works', () => {
  const { outage, fail } = world();
  for (let round = 0; round < 20; round += 1) {
    fail(4, overloaded);
    expect(outage.succeeded('bay')).toBeUndefined();
  }
  expect(outage.state()).toBe('none');
});

it('a refused row between failures shows that the service works', () => {
  const { outage, fail } = world();
  for (let round = 0; round < 20; round += 1) {
    fail(4, overloaded);
    expect(fail(1, refused)).toEqual([undefined]);
  }
  expect(outage.state()).toBe('none');
});

it('each failed probe doubles the wait up to the cap, and a successful one ends the outage', () => {
  const { outage, fail, advance } = world();
  fail(5, overloaded);
  for (const wait of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    advance(wait - 1);
    expect(outage.state()).toBe('down');
    advance(1);
    expect(outage.state()).toBe('probe');
    fail(1, overloaded);
  }
  expect(outage.succeeded('bay')).toBe('ended');
  expect(outage.state()).toBe('none');
  fail(5, overloaded);
  advance(1_000);
  expect(outage.state()).toBe('probe');
});

it('a refused row shows that the service is back', () => {
  const { outage, fail, advance } = world();
  fail(5, overloaded);
  advance(1_000);
  expect(fail(1, refused)).toEqual(['ended']);
  expect(outage.state()).toBe('none');
});

it('a row that cannot be rendered does not show that the service is back', () => {
  const { outage, fail, advance } = world();
  fail(5, overloaded);
  advance(1_000);
  expect(fail(1, new Error('The row cannot be rendered.'))).toEqual([undefined]);
  expect(outage.state()).toBe('probe');
});

it('refused rows are no outage, however many: those of one tenant do not hold back the others', () => {
  const { outage, fail } = world();
  expect(fail(1_000, refused).every((change) => change === undefined)).toBe(true);
  expect(outage.state()).toBe('none');
});

it.each([
  ['status 500', broken],
  ['status 503 busy', new PlatformError(service, 'busy', { upstreamStatus: 503 })],
  ['a response that is too large', new PlatformError(service, 'failed', { reason: 'oversized' })],
  ['a broken connection', new PlatformError(service, 'unreachable', { reason: 'ECONNRESET' })],
  ['a timeout', new PlatformError(service, 'timeout')],
  ['a definition that cannot be read', new PlatformError('configuration', 'failed', { upstreamStatus: 500 })],
])('%s is no outage if it concerns the rows of one tenant only', (_, error) => {
  const { outage, fail } = world();
  fail(1_000, error);
  expect(outage.state()).toBe('none');
});

it.each([
  ['refuses connections', new PlatformError(service, 'unreachable', { reason: 'ECONNREFUSED' })],
  ['has an open circuit', new PlatformError(service, 'open')],
  ['denies access', new PlatformError(service, 'denied', { upstreamStatus: 403 })],
  ['responds with 429', new PlatformError(service, 'failed', { upstreamStatus: 429 })],
])('a service that %s is down, even if only one tenant has rows', (_, error) => {
  const { outage, fail } = world();
  fail(5, error);
  expect(outage.state()).toBe('down');
});

it('a service that responds to two tenants with 500 is down, and the rows of both wait for the next probe', () => {
  const { outage, fail, advance } = world();
  fail(4, broken);
  fail(1, broken, 'lake');
  expect(outage.state()).toBe('down');
  expect(outage.held()).toEqual(['lake']);
  fail(1, broken, 'bay');
  expect(outage.held().toSorted()).toEqual(['bay', 'lake']);
  advance(1_000);
  expect(outage.held()).toEqual([]);
  fail(1, broken, 'lake');
  expect(outage.held()).toEqual(['lake']);
});

it('the success of a tenant ends the outage that the rows of two others caused', () => {
  const { outage, fail } = world();
  fail(4, broken);
  fail(4, broken, 'lake');
  expect(outage.succeeded('hill')).toBe('ended');
  expect(outage.state()).toBe('none');
});

it('the success of a tenant does not end the series of failures of the only tenant whose rows fail', () => {
  const { outage, fail } = world();
  fail(10, broken);
  expect(outage.succeeded('hill')).toBeUndefined();
  fail(10, broken);
  expect(outage.succeeded('bay')).toBe('ended');
});

it('an outage lasts while the probes of a single tenant get no response', () => {
  const { outage, fail, advance } = world();
  fail(5, new PlatformError(service, 'open'));
  advance(1_000);
  fail(1, new PlatformError(service, 'timeout'));
  expect(outage.state()).toBe('down');
  advance(1_999);
  expect(outage.state()).toBe('down');
});

it('an outage ends if only a row that fails with 500 is left of its single tenant', () => {
  const { outage, fail, advance } = world();
  fail(5, overloaded);
  advance(1_000);
  fail(1, broken);
  expect(outage.state()).toBe('none');
});

it('the wait of a row doubles with each attempt, is capped, and its upper half is random', () => {
  const backoff = { first: 5_000, cap: 300_000 };
  expect([1, 2, 3, 7, 8, 1_000].map((attempts) => retryDelay(attempts, backoff))).toEqual([
    5_000, 10_000, 20_000, 300_000, 300_000, 300_000,
  ]);
  vi.spyOn(Math, 'random').mockReturnValue(0);
  expect(retryDelay(1, backoff)).toBe(2_500);
});

it('a definition that is too large to be read again neither takes a service down nor quarantines a row', () => {
  const { outage, fail } = world();
  const tooLarge = new PlatformError('configuration', 'over-budget');
  fail(100, tooLarge);
  expect(outage.state()).toBe('none');
  expect(outage.held()).toEqual([]);
  expect(causeOf(tooLarge)).toBeUndefined();
});
