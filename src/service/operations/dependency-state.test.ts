// Tests that each change of a dependency's state is logged once, and that the state is exported as a metric.
import prom from 'prom-client';
import { beforeEach, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createDependencyState, type DependencyState } from './dependency-state.ts';

let log: CapturedLog;
let dependencyUp: prom.Gauge<'dependency'>;
let state: DependencyState;
beforeEach(() => {
  log = captureLog();
  const registers = [new prom.Registry()];
  dependencyUp = new prom.Gauge({ name: 'up', help: 'Up', labelNames: ['dependency'], registers });
  state = createDependencyState({ dependency: 'redis', name: 'Redis', log: log.log, metrics: { dependencyUp } });
});
const messages = () => log.lines().map(({ msg }) => msg);
const value = async () => (await dependencyUp.get()).values[0]?.value;

it('has no value before the first report', async () => {
  expect([state.status, await value(), messages()]).toEqual([undefined, undefined, []]);
});

it('logs one line for an outage and one for its end, however often they are reported', async () => {
  for (const _ of [1, 2]) state.up();
  for (const _ of [1, 2]) state.down('unreachable', { err: new Error('refused') });
  expect([state.status, await value()]).toEqual(['unreachable', 0]);
  for (const _ of [1, 2]) state.up();
  expect([state.status, await value()]).toEqual(['up', 1]);
  expect(messages()).toEqual(['Redis is reachable', 'Redis is unreachable', 'Redis is reachable again']);
  expect(log.lines()[1]).toMatchObject({ level: 'error', dependency: 'redis', err: { message: 'refused' } });
  expect(log.lines()[2]).toMatchObject({ level: 'info', downForMs: expect.any(Number) });
});

it('logs refused credentials once, also while nodes of a cluster cannot be reached', async () => {
  state.down('unreachable', {});
  for (const status of ['refused', 'unreachable', 'refused'] as const) state.down(status, {});
  expect([state.status, await value()]).toEqual(['refused', 0]);
  state.up();
  expect(messages()).toEqual(['Redis is unreachable', 'Redis refuses the credentials', 'Redis is reachable again']);
});
