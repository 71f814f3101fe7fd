// Tests that every outbox row of a traced request has the trace of that request, and that the delivery of the row links
// to that trace.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type Collector, openCollector } from '../../../test/support/collector.ts';
import { draft, drained, type FormReplica, type FormWorld, startFormWorld } from '../../../test/support/form-world.ts';
import { parseConfig } from '../../service/operations/config.ts';
import { startTracing } from '../../service/tracing/start-tracing.ts';
import { installTracing, type Tracing } from '../../service/tracing/tracing.ts';
import { tracingFields } from '../../service/tracing/tracing-fields.ts';

let collector: Collector;
let tracing: Tracing | undefined;
let world: FormWorld;
let replica: FormReplica;
beforeAll(async () => {
  collector = await openCollector();
  world = await startFormWorld();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' };
  tracing = await startTracing('test', parseConfig(z.object(tracingFields), env), captureLog().log);
  replica = await world.start({ env: { SUBSCRIBER_REMOVAL_DELAY: 'PT0.1S', NOTICE_TIME: 'PT0.01S' } });
});
afterAll(async () => {
  await world.close();
  await tracing?.close();
  installTracing(undefined);
  await collector.close();
});

interface TracedRow {
  kind: string;
  traceparent: string;
}

const rowsOf = async (id: string) => {
  const sql = 'SELECT kind, traceparent FROM outbox WHERE form_id = $1 ORDER BY sequence';
  return (await world.pool.query<TracedRow>(sql, [id])).rows;
};

describe('the outbox rows of a form', () => {
  it('have the trace of the request that wrote them, and those that follow a deletion have its trace', async () => {
    const id = await draft(replica, 'canary@example.org');
    const body = { data: { name: 'canary' }, files: {} };
    expect((await replica.ask('PUT', `/${id}/data`, { as: 'intake', body })).status).toBe(200);
    for (const operation of ['submit', 'to-draft']) {
      const as = operation === 'submit' ? 'intake' : 'admin';
      expect((await replica.ask('POST', `/${id}`, { as, body: { operation } })).status).toBe(200);
    }
    await drained(world.pool);
    expect((await replica.ask('DELETE', `/${id}`, { as: 'admin' })).status).toBe(204);
    const kinds = async () => (await rowsOf(id)).map(({ kind }) => kind);
    await expect.poll(kinds).toContain('remove-subscriber');
    await drained(world.pool);
    const rows = await rowsOf(id);
    const traceOf = (kind: string) => rows.find((row) => row.kind === kind)?.traceparent;
    const requests = ['form-created', 'form-submitted', 'form-to-draft', 'form-deleted'].map(traceOf);
    for (const { kind, traceparent } of rows) expect(traceparent, kind).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-01$/);
    expect(new Set(requests).size).toBe(4);
    expect(traceOf('subscribe')).toBe(traceOf('form-created'));
    expect(traceOf('remove-subscriber')).toBe(traceOf('form-deleted'));
    const linked = ({ kind, traceparent }: TracedRow) =>
      collector.spans.some(
        ({ name, links: [link] }) =>
          name === `deliver ${kind}` && traceparent === `00-${link?.traceId}-${link?.spanId}-01`,
      );
    await expect.poll(() => rows.filter((row) => !linked(row))).toEqual([]);
    expect(collector.raw()).not.toContain('canary');
  });
});
