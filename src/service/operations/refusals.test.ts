// Tests how refused requests are counted, and that the counts are bounded.
import { expect, it } from 'vitest';
import { createRefusals } from './refusals.ts';

let now = 0;
const make = () => createRefusals(() => new Date(now));
const request = { method: 'GET', route: '/a', status: 429, tenant: 't' };

it('refused requests are counted by route and status, for all tenants and for each, latest first', () => {
  const refusals = make();
  refusals.note(request);
  now = 1_000;
  refusals.note({ ...request, status: 503, tenant: undefined });
  now = 2_000;
  refusals.note({ ...request, tenant: 'other' });
  const of = (tenant?: string) => refusals.of(tenant).map(({ status, count, last }) => [status, count, last.getTime()]);
  expect(of()).toEqual([
    [429, 2, 2_000],
    [503, 1, 1_000],
  ]);
  expect(of('t')).toEqual([[429, 1, 0]]);
  expect(of('nobody')).toEqual([]);
});

it('the latest 50 kinds of requests are remembered', () => {
  const refusals = make();
  for (let nth = 0; nth < 60; nth += 1) refusals.note({ ...request, route: `/${nth}` });
  expect(refusals.of(undefined)).toHaveLength(50);
  expect(refusals.of('t').map(({ route }) => route)).toContain('/59');
});
