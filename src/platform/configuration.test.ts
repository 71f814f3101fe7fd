import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type FaultServer, sendJson, startFaultServer } from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { type Configuration, createConfiguration } from './configuration.ts';

const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0';
const place = { tenantId };
const core = { core: true } as const;
const revision = (number: number, configuration: unknown = ['Banff']) => ({
  revision: number,
  created: '2026-08-01T09:00:00Z',
  lastUpdated: null,
  configuration,
});
const latest = (value: unknown) => ({
  urn: 'u',
  namespace: 'data-register',
  name: 'cities',
  latest: value,
  active: null,
});

let server: FaultServer;
let calls: PlatformCalls;
let configuration: Configuration;

const sent = () => {
  const { method, target, body } = server.requests.at(-1) ?? { method: '', target: '', body: '' };
  const url = new URL(target, 'http://x');
  return { method, path: url.pathname, query: Object.fromEntries(url.searchParams), body: body && JSON.parse(body) };
};

beforeEach(async () => {
  calls = createPlatformCalls();
  server = await startFaultServer(answerJson(latest(revision(3))));
  configuration = createConfiguration({ ...calls.options, client: calls.client('configuration', server.url) });
});

afterEach(async () => {
  await calls.close();
  await server.close();
});

describe('reading for editing', () => {
  it('is never cached', async () => {
    for (let read = 1; read <= 3; read += 1) {
      expect(await configuration.read('data-register', 'cities', place)).toMatchObject({ latest: { revision: 3 } });
      expect(server.requests).toHaveLength(read);
    }
    expect(sent()).toMatchObject({ method: 'GET', path: '/configuration/data-register/cities', query: { tenantId } });
  });

  it('reads core only if core is named, and then sends no tenant', async () => {
    await configuration.read('platform', 'token-handler', core);
    expect(sent().query).toEqual({});
  });

  it('puts each name into one encoded path segment', async () => {
    await configuration.read('a b', 'x/../?y#z', place);
    expect(server.requests[0]?.target.split('?')[0]).toBe('/configuration/a%20b/x%2F..%2F%3Fy%23z');
    await expect(configuration.read('platform', '..', place)).rejects.toMatchObject({ kind: 'rejected' });
  });

  it.each([
    ['null', { latest: null, active: null }],
    ['absent', {}],
    ['empty', { latest: {}, active: {} }],
  ])('returns undefined for revisions that are %s', async (_, answer) => {
    server.behave(answerJson(answer));
    expect(await configuration.read('data-register', 'cities', place)).toEqual({
      latest: undefined,
      active: undefined,
    });
  });

  it('of large documents is limited for each tenant, whatever is read', async () => {
    // About 16 MiB in memory for each document.
    const large = revision(0, [...Array(95_000).fill({}), 'x'.repeat(5_500_000)]);
    const page = { results: [large], page: { next: null } };
    const reads = [
      [latest(large), () => configuration.read('data-register', 'cities', place)],
      [{ results: [{ ...latest(large) }], page: { next: null } }, () => configuration.list('data-register', place)],
      [page, () => configuration.revisions('data-register', 'cities', place)],
      [large.configuration, () => configuration.revision('data-register', 'cities', 0, place)],
    ] as const;
    for (const [answer, read] of [...reads, ...reads, ...reads]) {
      server.behave(answerJson(answer));
      await read().catch((error) => expect(error).toMatchObject({ kind: 'over-budget' }));
    }
    const count = server.requests.length;
    expect(count).toBeLessThan(reads.length * 3);
    for (const [, read] of reads) await expect(read()).rejects.toMatchObject({ kind: 'over-budget', status: 503 });
    expect(server.requests).toHaveLength(count);
    server.behave(answerJson(latest(revision(3))));
    await configuration.read('data-register', 'cities', { tenantId: `${tenantId}1` });
    await configuration.read('platform', 'token-handler', core);
  });

  it('of a failing service is an error, not a missing configuration', async () => {
    server.behave(answerJson({ errorMessage: 'no' }, 500));
    await expect(configuration.read('data-register', 'cities', place)).rejects.toMatchObject({ kind: 'failed' });
  });
});

describe('lists', () => {
  const entry = (name: string) => ({ ...latest(revision(0)), name });

  it('take top, after, includeActive and criteria', async () => {
    server.behave(answerJson({ results: [entry('cities')], page: { size: 1, next: null, total: 1 } }));
    const criteria = { nameContains: 'c i' };
    const page = await configuration.list('data-register', {
      ...place,
      top: 50,
      after: 'MTA=',
      includeActive: true,
      criteria,
    });
    expect(page).toMatchObject({ results: [{ name: 'cities', latest: { revision: 0 } }], next: undefined });
    expect(sent()).toMatchObject({
      path: '/configuration/data-register',
      query: { tenantId, top: '50', after: 'MTA=', includeActive: 'true', criteria: '{"nameContains":"c i"}' },
    });
  });
});

describe('writing', () => {
  it.each([
    [
      'update',
      () => configuration.update('a', 'b', { k: { v: 1 } }, place),
      'PATCH',
      { operation: 'UPDATE', update: { k: { v: 1 } } },
    ],
    [
      'replace',
      () => configuration.replace('a', 'b', ['x'], place),
      'PATCH',
      { operation: 'REPLACE', configuration: ['x'] },
    ],
    [
      'deleteProperty',
      () => configuration.deleteProperty('a', 'b', 'k', place),
      'PATCH',
      { operation: 'DELETE', property: 'k' },
    ],
  ])('%s sends its operation and returns the latest revision', async (_, write, method, body) => {
    expect(await write()).toMatchObject({ revision: 3, configuration: ['Banff'] });
    expect(sent()).toEqual({ method, path: '/configuration/a/b', query: { tenantId }, body });
  });

  it('setActiveRevision pins a revision and returns its number', async () => {
    server.behave(answerJson({ namespace: 'a', name: 'b', active: 3 }));
    expect(await configuration.setActiveRevision('a', 'b', 3, place)).toBe(3);
    expect(sent()).toMatchObject({ method: 'POST', body: { operation: 'SET-ACTIVE-REVISION', revision: 3 } });
  });

  it.each([true, false])('remove returns whether the configuration existed: %s', async (deleted) => {
    server.behave(answerJson({ deleted }));
    expect(await configuration.remove('a', 'b', place)).toBe(deleted);
    expect(sent()).toMatchObject({ method: 'DELETE', path: '/configuration/a/b' });
  });

  it('a rejection contains the reason, for the client', async () => {
    server.behave(answerJson({ errorMessage: 'Value not valid for data-register:cities' }, 400));
    await expect(configuration.replace('a', 'b', 1, place)).rejects.toMatchObject({
      kind: 'rejected',
      upstreamStatus: 400,
      rejection: 'Value not valid for data-register:cities',
    });
  });

  it.each([
    ['update appends to arrays and is not', () => configuration.update('a', 'b', {}, place), 1],
    [
      'an update that the caller calls idempotent is',
      () => configuration.update('a', 'b', {}, { ...place, idempotent: true }),
      3,
    ],
    ['replace is', () => configuration.replace('a', 'b', {}, place), 3],
    ['setActiveRevision is', () => configuration.setActiveRevision('a', 'b', 0, place), 3],
  ])('%s repeated on 503', async (_, write, times) => {
    server.behave(answerJson({}, 503));
    await expect(write()).rejects.toMatchObject({ kind: 'failed' });
    expect(server.requests).toHaveLength(times);
  });
});

describe('the active revision, else the latest', () => {
  it('is requested with orLatest and cached', async () => {
    server.behave(answerJson(revision(2)));
    const first = await configuration.activeOrLatest('form-service', 'permit', place);
    expect(first).toMatchObject({ revision: 2 });
    expect(await configuration.activeOrLatest('form-service', 'permit', place)).toBe(first);
    expect(sent()).toMatchObject({
      path: '/configuration/form-service/permit/active',
      query: { tenantId, orLatest: 'true' },
    });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['an empty body', 200, ''],
    ['null', 200, 'null'],
    ['{}', 200, '{}'],
    ['404', 404, '{"errorMessage":"no"}'],
  ])('is undefined if the service returns %s', async (_, status, body) => {
    server.behave((response) => response.writeHead(status).end(body));
    expect(await configuration.activeOrLatest('form-service', 'permit', place)).toBeUndefined();
  });

  it('of one tenant is never another tenant’s or core’s', async () => {
    server.behave((response, { target }) => {
      const owner = new URL(target, 'http://x').searchParams.get('tenantId') ?? 'core';
      sendJson(response, revision(0, owner));
    });
    for (const whose of [{ tenantId: 'urn:a' }, { tenantId: 'urn:b' }, core, { tenantId: 'urn:a' }]) {
      const found = await configuration.activeOrLatest('form-service', 'permit', whose);
      expect(found?.configuration).toBe('tenantId' in whose ? whose.tenantId : 'core');
    }
  });

  it('is not mixed up with the latest', async () => {
    server.behave((response, { target }) =>
      target.includes('/active') ? sendJson(response, revision(1)) : sendJson(response, latest(revision(2))),
    );
    expect((await configuration.activeOrLatest('form-service', 'permit', place))?.revision).toBe(1);
    expect((await configuration.latest('form-service', 'permit', place))?.revision).toBe(2);
  });

  it('is fetched again after a write of this process', async () => {
    let current = 1;
    server.behave((response, { target }) =>
      sendJson(response, target.includes('/active') ? revision(current) : latest(revision(current))),
    );
    await configuration.activeOrLatest('form-service', 'permit', place);
    current = 2;
    await configuration.replace('form-service', 'permit', {}, place);
    expect((await configuration.activeOrLatest('form-service', 'permit', place))?.revision).toBe(2);
  });

  it('is used for a day while the service is down, or 5 minutes if it grants permission', async () => {
    server.behave(answerJson(revision(1)));
    await configuration.activeOrLatest('form-service', 'permit', place);
    await server.close();
    calls.advance(3_600_000);
    expect(await configuration.activeOrLatest('form-service', 'permit', place)).toMatchObject({ revision: 1 });
    await expect(
      configuration.activeOrLatest('form-service', 'permit', place, { permission: true }),
    ).rejects.toMatchObject({ kind: 'unreachable' });
  });
});

describe('a document with more than 200,000 JSON values', () => {
  const many = { name: 'Large', filler: Array.from({ length: 100_001 }, () => ({})) };
  const few = { ...many, filler: many.filler.slice(10) };
  const serve = (value: unknown) => {
    const text = JSON.stringify(revision(3, value));
    server.behave((response) => response.writeHead(200, { 'content-type': 'application/json' }).end(text));
  };
  const read = (owner: Parameters<Configuration['activeOrLatest']>[2], name = 'permit') =>
    configuration.activeOrLatest('form-service', name, owner);

  it('of a tenant is refused with a reason, because everybody would wait while it is parsed', async () => {
    serve(many);
    await expect(read(place)).rejects.toMatchObject({
      ...{ status: 502, kind: 'failed', reason: 'oversized' },
      detail: expect.stringContaining('has more bytes or JSON values than this service accepts') as string,
    });
    serve(few);
    expect(await read(place, 'other')).toMatchObject({ configuration: few });
  });

  it('costs only its tenant: other tenants and the operator can still read theirs', async () => {
    serve(many);
    for (let nth = 0; nth < 30; nth += 1) await expect(read(place, `permit ${nth}`)).rejects.toThrow('too large');
    expect(await read(core)).toMatchObject({ configuration: many });
    serve(few);
    expect(await read({ tenantId: `${tenantId}-other` })).toMatchObject({ configuration: few });
  });

  it('is refused as well when it is read for editing, or is listed', async () => {
    const two = { latest: revision(3, many), active: revision(2, many) };
    server.behave(answerJson({ ...latest(null), ...two }));
    await expect(configuration.read('form-service', 'permit', place)).rejects.toThrow('too large');
    server.behave(answerJson({ results: [{ namespace: 'a', name: 'b', ...two }], page: { next: null } }));
    await expect(configuration.list('form-service', place)).rejects.toThrow('too large');
  });
});
