// Tests values that pass through the workers that execute the schemas of tenants, and jobs that a stop interrupts.
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

it('a stop does not make a notice that is being rendered, or a value that is being validated, the fault of its tenant', async () => {
  const code = createTenantCode({ metrics: createMetrics() });
  const data = {
    tenant: { id: 'urn:ads:tenant:a', name: 'A' },
    managementUrl: '',
    subscriber: { id: 's', urn: 'urn:ads:subscriber:s', addressAs: 'Ana' },
    event: {
      ...{ namespace: 'form-service', name: 'form-locked', timestamp: '2026-01-01T00:00:00Z' },
      ...{ correlationId: undefined, context: '{}', payload: '{}' },
    },
  };
  const render = () => code.render('tenant', { subject: 'Locked', body: 'Hi' }, data);
  // The first job starts the worker that the stop ends during the other jobs.
  expect(await render()).toMatchObject({ subject: 'Locked' });
  const interrupted = Promise.allSettled([render(), code.validate('other', '{"type":"object"}', {})]);
  await code.close();
  const unavailable = { status: 'rejected', reason: { slug: 'unavailable' } };
  expect(await interrupted).toMatchObject([unavailable, unavailable]);
});
