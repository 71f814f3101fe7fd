// Tests values that pass through the workers that execute the schemas of tenants.
import { expect, it } from 'vitest';
import { createMetrics } from '../service/operations/metrics.ts';
import { createTenantCode } from './tenant-code.ts';

it('a value keeps its names with the defaults of its schema, whatever names other values had before', async () => {
  const code = createTenantCode({ metrics: createMetrics() });
  const schema = { type: 'object', properties: { added: { default: 1 } } };
  const complete = (tenant: string, value: unknown) => code.complete(tenant, schema, value, 1_000);
  const names = ['\\', '\n', '"', '\t'];
  for (const tenant of ['first', 'second'])
    for (const name of names)
      expect(await complete(tenant, { q: 1, [name]: 2 })).toEqual({
        valid: true,
        value: { q: 1, [name]: 2, added: 1 },
      });
  await code.close();
});
