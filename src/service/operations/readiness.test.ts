import { expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createMetrics } from './metrics.ts';
import { createReadiness } from './readiness.ts';

function start() {
  const state: Record<'provider' | 'store' | 'pool', string | undefined> = {
    provider: 'unreachable',
    store: 'unreachable',
    pool: undefined,
  };
  const metrics = createMetrics();
  const captured = captureLog();
  let draining = false;
  const report = createReadiness({
    first: { provider: () => state.provider, store: async () => state.store },
    local: { pool: () => state.pool },
    isDraining: () => draining,
    metrics,
    log: captured.log,
  });
  const unready = async () =>
    (await metrics.registry.getSingleMetric('formgate_unready')?.get())?.values
      .filter(({ value }) => value === 1)
      .map(({ labels }) => labels.reason);
  return {
    ...{ state, report, unready },
    drain: () => {
      draining = true;
    },
    messages: () => captured.lines().map(({ msg }) => msg),
  };
}

it('a pod becomes ready when each condition was met once, and stays ready afterwards', async () => {
  const { state, report, unready, messages } = start();
  expect(await report()).toEqual({
    ready: false,
    draining: false,
    waitingFor: { provider: 'unreachable', store: 'unreachable' },
  });
  state.provider = undefined;
  expect((await report()).waitingFor).toEqual({ store: 'unreachable' });
  state.provider = 'unreachable';
  state.store = undefined;
  expect(await report()).toEqual({ ready: true, draining: false, waitingFor: {} });
  state.store = 'unreachable';
  expect((await report()).ready).toBe(true);
  expect(await unready()).toEqual([]);
  expect(messages()).toEqual(['became ready']);
});

it('a local failure ends readiness while it lasts, and so does draining', async () => {
  const { state, report, unready, drain, messages } = start();
  Object.assign(state, { provider: undefined, store: undefined });
  expect((await report()).ready).toBe(true);
  state.pool = 'broken';
  expect(await report()).toEqual({ ready: false, draining: false, waitingFor: { pool: 'broken' } });
  expect(await unready()).toEqual(['pool']);
  state.pool = undefined;
  expect((await report()).ready).toBe(true);
  drain();
  expect(await report()).toEqual({ ready: false, draining: true, waitingFor: {} });
  expect(await unready()).toEqual(['draining']);
  expect(messages()).toEqual(['became ready', 'readiness ended', 'became ready']);
});
