import { expect, it } from 'vitest';
import { plan } from './schedule.ts';

it('a seed determines the schedule, which has every fault', () => {
  const stores = ['one', 'two'];
  expect(plan('a', 40, stores)).toEqual(plan('a', 40, stores));
  expect(plan('a', 40, stores)).not.toEqual(plan('b', 40, stores));
  const steps = plan('a', 22, stores);
  expect(new Set(steps.flatMap(({ name, network }) => (network ? [] : [name]))).size).toBe(2);
  expect(new Set(steps.flatMap(({ network }) => network?.fault ?? [])).size).toBe(7);
  expect(new Set(steps.flatMap(({ network }) => network?.link ?? [])).size).toBe(6);
});
