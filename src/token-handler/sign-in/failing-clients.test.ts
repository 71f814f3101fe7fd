// Tests, with a simulated clock, when the sign-ins of a client count as failing.
import { beforeEach, expect, it } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createFailingClients } from './failing-clients.ts';

const minute = 60_000;
const client = (nth = 0) => ({ tenantId: 'urn:example:tenant', clientId: `client-${nth}` });
let log: CapturedLog;
let now: number;
let clients: ReturnType<typeof createFailingClients>;
beforeEach(() => {
  log = captureLog();
  now = 0;
  clients = createFailingClients({ clock: () => new Date(now), log: log.log });
});
const fail = (times: number, which = client()) => {
  for (let time = 0; time < times; time += 1) clients.failed(which, 'client-not-registered');
};

it('counts a client after five failures without a success, and logs it once', () => {
  fail(4);
  expect([clients.count(), log.lines()]).toEqual([0, []]);
  fail(3);
  expect(clients.count()).toBe(1);
  expect(log.lines()).toMatchObject([
    { level: 'warn', tenant: 'urn:example:tenant', client: 'client-0', reason: 'client-not-registered' },
  ]);
});

it('forgets the failures with a success, and logs that the client works again', () => {
  fail(4);
  clients.succeeded(client());
  fail(4);
  expect([clients.count(), log.lines()]).toEqual([0, []]);
  fail(1);
  clients.succeeded(client());
  expect(clients.count()).toBe(0);
  expect(log.lines().map(({ msg }) => msg)).toEqual([
    'sign-ins of a client keep failing',
    'sign-ins of a client succeed again',
  ]);
});

it('counts only failures of the last 15 minutes, and reports a client again afterwards', () => {
  fail(3);
  now = 15 * minute + 1;
  fail(4);
  expect(clients.count()).toBe(0);
  fail(1);
  expect(clients.count()).toBe(1);
  now = 40 * minute;
  expect(clients.count()).toBe(0);
  fail(5);
  expect([clients.count(), log.lines().length]).toEqual([1, 2]);
});

it('counts the clients of each tenant separately, and remembers a bounded number', () => {
  fail(3);
  fail(3, { ...client(), tenantId: 'urn:example:other' });
  expect(clients.count()).toBe(0);
  for (let nth = 0; nth < 1_500; nth += 1) fail(5, client(nth));
  expect(clients.count()).toBe(1_000);
});

it('counts failures of exactly 15 minutes, and forgets an unknown client without a line in the log', () => {
  clients.succeeded(client(1));
  fail(1);
  now = 15 * minute;
  fail(4);
  expect(clients.count()).toBe(1);
  clients.succeeded(client());
  expect(log.lines()).toMatchObject([{ client: 'client-0' }, { tenant: 'urn:example:tenant', client: 'client-0' }]);
});
