// Tests that a configuration service whose list of definitions never ends cannot keep a request busy. The configuration
// service is scripted.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type FaultServer, sendJson, startFaultServer } from '../../../test/support/fault-server.ts';
import { type RegisterBackend, type Replica, startRegisterBackend } from '../../../test/support/registers.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createDefinitionList } from './list.ts';

let backend: RegisterBackend;
let service: FaultServer;
let api: Replica;
let pages = 0;
beforeAll(async () => {
  backend = await startRegisterBackend();
  service = await startFaultServer((response, { target }) => {
    if (!new URL(target, 'http://localhost').pathname.endsWith('/form-service')) return sendJson(response, {});
    return sendJson(response, { results: [], page: {} });
  });
  api = await backend.start({ configurationUrl: service.url });
});
afterEach(() => {
  pages = 0;
});
afterAll(async () => {
  await backend.close();
  await service.close();
});

/** Makes the service respond with one definition on each page, and the cursor that `next` returns. */
function listWith(next: (page: number) => string): void {
  service.behave((response, { target }) => {
    const { pathname } = new URL(target, 'http://localhost');
    if (pathname.endsWith('/platform/form-service')) return sendJson(response, {});
    pages += 1;
    const latest = { revision: 0, configuration: { name: 'Permit' } };
    const results = [{ namespace: 'form-service', name: `permit-${pages}`, latest }];
    return sendJson(response, { results, page: { next: next(pages) } });
  });
}

const search = () => api.request('GET', '/cities/references');

it.each([
  ['the same cursor', () => 'again'],
  ['two cursors in turn', (page: number) => `cursor ${page % 2}`],
])('a search for references ends with 502 if the configuration service repeats %s', async (_name, next) => {
  listWith(next);
  const { status, body } = await search();
  expect({ status, body }).toMatchObject({ status: 502, body: { type: 'urn:formgate:problem:dependency-failed' } });
  expect(pages).toBeLessThan(5);
  expect(api.logText()).toContain('a list that does not end: it repeated a cursor');
});

it('a list of definitions ends with 502 if each page of the configuration service has a new cursor', async () => {
  let read = 0;
  const configuration = {
    read: async () => ({}),
    list: async () => {
      read += 1;
      const latest = { revision: 0, configuration: { name: 'Permit' } };
      const results = [{ namespace: 'form-service', name: 'permit', latest, active: undefined }];
      return { results, next: `cursor ${read}` };
    },
  };
  const list = createDefinitionList({ configuration, clock: systemClock, metrics: createMetrics() });
  await expect(list(backend.tenant.id)).rejects.toMatchObject({ slug: 'dependency-failed', status: 502 });
  expect(read).toBe(1_000);
});
