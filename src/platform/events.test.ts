import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type FaultServer, startFaultServer } from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { createEvents, type Events } from './events.ts';

const event = {
  namespace: 'form-service',
  name: 'form-locked',
  timestamp: '2026-08-20T17:00:00Z',
  correlationId: 'urn:example:platform:form-service:v1:/forms/5d0c',
  context: { definitionId: 'permit', formId: '5d0c', idempotencyKey: 'k' },
  tenantId: 'urn:example:platform:tenant-service:v2:/tenants/65f0',
  payload: { deleteOn: '2026-09-04T17:00:00Z' },
};

let server: FaultServer;
let calls: PlatformCalls;
let events: Events;

beforeEach(async () => {
  calls = createPlatformCalls();
  server = await startFaultServer((response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('OK'));
  events = createEvents(calls.client('events', server.url));
});

afterEach(async () => {
  await calls.close();
  await server.close();
});

describe('sending an event', () => {
  it('posts it unchanged; the text OK means accepted', async () => {
    await events.send(event);
    const target = `/events?tenantId=${encodeURIComponent(event.tenantId)}`;
    expect(server.requests[0]).toMatchObject({ method: 'POST', target });
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual(event);
  });

  it('is tried once, because the outbox retries', async () => {
    server.behave(answerJson({}, 503));
    await expect(events.send(event)).rejects.toMatchObject({ service: 'events', kind: 'failed', upstreamStatus: 503 });
    expect(server.requests).toHaveLength(1);
  });

  it('that the service rejects is PlatformError rejected', async () => {
    server.behave(answerJson({ errorMessage: 'Value not valid' }, 400));
    await expect(events.send(event)).rejects.toMatchObject({ kind: 'rejected', rejection: 'Value not valid' });
  });
});
