// Tests the search for references in UI schemas that are built to make it slow. The configuration is scripted.
import { expect, it } from 'vitest';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { createRegisterReferences } from './references.ts';
import { createRegisterStore } from './store.ts';

const urns = createUrns('urn:example');
const context = { tenantId: 'urn:example:tenants/demo' };

/** Returns the search of a tenant that has one form definition with this UI schema. */
function searchIn(uiSchema: unknown) {
  const stored = { revision: 0, configuration: { permit: { name: 'Permit', uiSchema } } };
  const configuration = {
    read: async () => ({ latest: stored }),
    list: async () => ({ results: [] }),
  } as unknown as Parameters<typeof createRegisterStore>[0];
  const store = createRegisterStore(configuration);
  return createRegisterReferences({ configuration, store, urns, metrics: createMetrics() });
}

/** Returns the CPU time of this thread in milliseconds. Elapsed time would include the work of other processes. */
function spent(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

it('other requests are served during a search of a UI schema with a million texts', async () => {
  const urn = urns.register('cities');
  const { to } = searchIn({ elements: Array.from({ length: 1_000_000 }, () => ''), options: { register: { urn } } });
  let longest = 0;
  let last = spent();
  const timer = setInterval(() => {
    longest = Math.max(longest, spent() - last);
    last = spent();
  }, 1);
  const { results } = await to('cities', context);
  clearInterval(timer);
  expect(results.map(({ pointer }) => pointer)).toEqual(['/options/register/urn']);
  expect(longest).toBeLessThan(100);
});

it('a search of a deeply nested UI schema finds the references with their pointers', async () => {
  const depth = 100_000;
  const text = `${'{"a":['.repeat(depth)}"${urns.register('cities')}"${']}'.repeat(depth)}`;
  const { results } = await searchIn(JSON.parse(text)).to('cities', context);
  expect(results.map(({ pointer }) => pointer)).toEqual(['/a/0'.repeat(depth)]);
});

it('a list of references is truncated when their pointers are long', async () => {
  const name = 'n'.repeat(100_000);
  const { to } = searchIn({ [name]: Array.from({ length: 500 }, () => urns.register('cities')) });
  const found = await to('cities', context);
  expect(found.truncated).toBe(true);
  expect(found.results.slice(0, 2).map(({ pointer }) => pointer)).toEqual([`/${name}/0`, `/${name}/1`]);
  expect(JSON.stringify(found).length).toBeLessThan(2_000_000);
});
