// Tests which outcomes the circuit breaker counts. The tests decide when calls end. http-client.test.ts tests the
// breaker with real requests.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { captureLog } from '../../test/support/captured-log.ts';
import { createMetrics } from '../service/operations/metrics.ts';
import { type Circuit, createCircuit } from './circuit.ts';
import { createPlatformMetrics } from './platform-metrics.ts';

const resetMs = 1_000;
/** Minimum number of calls after which the circuit can open. */
const minimumCalls = 5;

let circuit: Circuit;
let waitForProbe: () => void;

beforeEach(() => {
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  waitForProbe = () => {
    now += resetMs;
  };
  const metrics = createPlatformMetrics(createMetrics());
  circuit = createCircuit({ service: 'configuration', metrics, log: captureLog().log, resetMs });
  return () => clock.mockRestore();
});

interface RunningCall {
  succeed(): Promise<void>;
  fail(): Promise<void>;
}

/** Begins a call that ends when the test calls `succeed` or `fail`. */
function begin(): RunningCall {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ended = circuit.run(() => promise).catch(() => undefined);
  const end = (settle: () => void) => async () => {
    settle();
    await ended;
  };
  return { succeed: end(resolve), fail: end(() => reject(new Error('The call failed.'))) };
}

const beginCalls = (count: number) => Array.from({ length: count }, begin);

async function failAll(calls: RunningCall[]): Promise<void> {
  for (const call of calls) await call.fail();
}

function isOpen(): boolean {
  try {
    circuit.refuseIfOpen();
    return false;
  } catch {
    return true;
  }
}

async function openCircuit(): Promise<void> {
  await failAll(beginCalls(minimumCalls));
  expect(isOpen()).toBe(true);
}

async function recover(): Promise<void> {
  waitForProbe();
  await begin().succeed();
  expect(isOpen()).toBe(false);
}

describe('calls that began before the circuit opened', () => {
  it('do not count after the recovery if they fail while the circuit is open', async () => {
    const early = beginCalls(minimumCalls);
    await openCircuit();
    await failAll(early);
    await recover();
    await begin().succeed();
    expect(isOpen()).toBe(false);
  });

  it('do not count if they fail after the recovery', async () => {
    const early = beginCalls(minimumCalls);
    await openCircuit();
    await recover();
    await failAll(early);
    expect(isOpen()).toBe(false);
  });

  it('do not keep the circuit closed if they succeed after the recovery', async () => {
    const early = beginCalls(2 * minimumCalls);
    await openCircuit();
    await recover();
    for (const call of early) await call.succeed();
    await openCircuit();
  });

  it('do not close the circuit if they succeed while it is open', async () => {
    const [early] = beginCalls(1);
    await openCircuit();
    await early?.succeed();
    expect(isOpen()).toBe(true);
  });
});

describe('a slow probe', () => {
  it('does not open the circuit if it fails after a later probe has closed it', async () => {
    await openCircuit();
    waitForProbe();
    const slow = begin();
    await recover();
    await slow.fail();
    expect(isOpen()).toBe(false);
  });

  it('does not close the circuit if it succeeds after a later probe has closed it and calls have opened it again', async () => {
    await openCircuit();
    waitForProbe();
    const slow = begin();
    await recover();
    await openCircuit();
    await slow.succeed();
    expect(isOpen()).toBe(true);
  });
});

it('after a recovery, the circuit opens only after as many calls as after a start', async () => {
  await openCircuit();
  await recover();
  await failAll(beginCalls(minimumCalls - 1));
  expect(isOpen()).toBe(false);
  await begin().fail();
  expect(isOpen()).toBe(true);
});
