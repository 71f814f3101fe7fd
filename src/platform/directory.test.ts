import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type FaultServer, startFaultServer } from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { createUrns } from '../service/urn.ts';
import { createDirectory, type Directory } from './directory.ts';
import { directoryOverrides } from './directory-variables.ts';

const entry = (urn: string, url: unknown) => ({ namespace: 'platform', service: 'x', urn, url, _links: {} });
const p = 'urn:example:platform';

let server: FaultServer;
let calls: PlatformCalls;

function create(overrides: Record<string, string> = {}, url = server.url): Directory {
  return createDirectory({ ...calls.options, url, urns: createUrns('urn:example'), overrides });
}

beforeEach(async () => {
  calls = createPlatformCalls();
  server = await startFaultServer(
    answerJson([
      entry(`${p}:event-service`, 'https://events.example.org/'),
      entry(`${p}:event-service:v1`, 'https://events.example.org/here/event/v1/'),
      entry(`${p}:configuration-service`, 'https://configuration.example.org/base/'),
      entry(`${p}:unknown-service`, 'https://unknown.example.org'),
    ]),
  );
});

afterEach(async () => {
  await calls.close();
  await server.close();
});

describe('a URN', () => {
  it('of a service is found by exact match, without trailing slash', async () => {
    expect(await create().resolve(`${p}:event-service`)).toBe('https://events.example.org');
    expect(server.requests[0]).toMatchObject({ method: 'GET', target: '/directory/v2/namespaces/platform/entries' });
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });

  it('of an API is found by exact match before anything else', async () => {
    expect(await create().resolve(`${p}:event-service:v1`)).toBe('https://events.example.org/here/event/v1');
  });

  it('of a platform API without an entry is found below its service, at its well-known path', async () => {
    expect(await create().resolve(`${p}:configuration-service:v2`)).toBe(
      'https://configuration.example.org/base/configuration/v2',
    );
  });

  it.each([
    `${p}:configuration-service:v3`,
    `${p}:unknown-service:v1`,
    `${p}:Event-Service`,
    `${p}:absent-service`,
    'urn:example:other:configuration-service:v2',
  ])('%s without an entry is an error, never a guess', async (urn) => {
    await expect(create().resolve(urn)).rejects.toMatchObject({
      service: 'directory',
      kind: 'failed',
      reason: 'absent',
    });
  });

  it('of a resource is the URL of its API, one slash and its path', async () => {
    expect(await create().resolve(`${p}:event-service:v1:/events/a b`)).toBe(
      'https://events.example.org/here/event/v1/events/a b',
    );
    expect(await create().resolve(`${p}:event-service:v1:events`)).toBe(
      'https://events.example.org/here/event/v1/events',
    );
  });

  it.each(['', 'urn:other:platform:event-service', 'urn:example:platform', `${p}:event-service:v1:/a:b`, `${p}::v1`])(
    '"%s" is refused without a call',
    async (urn) => {
      await expect(create().resolve(urn)).rejects.toMatchObject({ kind: 'rejected' });
      expect(server.requests).toHaveLength(0);
    },
  );

  it('names a namespace with spaces in one encoded segment', async () => {
    await create()
      .resolve('urn:example:blue river:permits')
      .catch(() => undefined);
    expect(server.requests[0]?.target).toBe('/directory/v2/namespaces/blue%20river/entries');
  });
});

describe('overrides', () => {
  it('of the environment take precedence over entries and need no directory', async () => {
    const overrides = {
      DIR_PLATFORM_EVENT_SERVICE_V1: 'http://local:1/event/v1',
      DIR_PLATFORM_FILE_SERVICE: 'http://local:2',
    };
    const directory = create(overrides);
    expect(await directory.resolve(`${p}:event-service:v1`)).toBe('http://local:1/event/v1');
    expect(await directory.resolve(`${p}:file-service`)).toBe('http://local:2');
    expect(await directory.resolve(`${p}:file-service:v1`)).toBe('http://local:2/file/v1');
    expect(server.requests).toHaveLength(0);
  });

  it('are the DIR_ variables, without trailing slash', () => {
    expect(directoryOverrides({ DIR_A_B: 'https://x.example.org/y/', PATH: '/bin', DIR_EMPTY: '' })).toEqual({
      DIR_A_B: 'https://x.example.org/y',
    });
  });

  it('that are not http URLs are configuration errors, listed together and without values', () => {
    const read = () => directoryOverrides({ DIR_A: 'ftp://canary', DIR_B: 'canary', DIR_C: 'http://u:canary@h/' });
    expect(read).toThrow(/DIR_A.*\n.*DIR_B.*\n.*DIR_C/);
    expect(read).not.toThrow(/canary/);
  });

  it.each(['?', '#', '/event/v1?', '/event/v1#'])(
    'that end with %s are errors: every call would go to one path',
    (end) => {
      expect(() => directoryOverrides({ DIR_A: `https://x.example.org${end}` })).toThrow(/DIR_A/);
    },
  );
});

describe('the directory', () => {
  it('may be configured with its API path', async () => {
    await create({}, `${server.url}/directory/v2`).resolve(`${p}:event-service`);
    expect(server.requests[0]?.target).toBe('/directory/v2/namespaces/platform/entries');
  });

  it('is called once per namespace, not once per URN or call', async () => {
    const directory = create();
    const urns = [`${p}:event-service`, `${p}:event-service:v1`, `${p}:configuration-service:v2`];
    await Promise.all(urns.map((urn) => directory.resolve(urn)));
    for (const urn of urns) await directory.resolve(urn);
    expect(server.requests).toHaveLength(1);
  });

  it('is called again for a missing entry, at most once a second', async () => {
    const directory = create();
    const missing = () => directory.resolve(`${p}:new-service`);
    for (let call = 0; call < 20; call += 1) await expect(missing()).rejects.toMatchObject({ reason: 'absent' });
    expect(server.requests).toHaveLength(2);
    server.behave(answerJson([entry(`${p}:new-service`, 'http://new')]));
    calls.advance(1_000);
    expect(await missing()).toBe('http://new');
  });

  it('is asked for unknown namespaces and entries only within the share of the tenant whose target names them', async () => {
    const directory = create();
    await directory.resolve('urn:example:river:permits', 'river').catch(() => undefined);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 150 }, (_, nth) => directory.resolve(`urn:example:n${nth}:x`, 'hostile')),
    );
    const reasons = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason);
    expect(reasons.filter(({ slug }) => slug === 'busy')).toHaveLength(50);
    expect(server.requests).toHaveLength(101);
    calls.advance(1_000);
    // Another tenant still finds new entries. Reading a known namespace again is charged to the tenant that asks.
    server.behave(answerJson([entry('urn:example:river:permits', 'http://permits')]));
    expect(await directory.resolve('urn:example:river:permits', 'river')).toBe('http://permits');
    for (let nth = 0; nth < 20; nth += 1)
      await directory.resolve(`urn:example:n${nth}:x`, 'hostile').catch(() => undefined);
    expect(server.requests).toHaveLength(122);
    await directory.resolve('urn:example:n20:x', 'hostile').catch(() => undefined);
    expect(server.requests).toHaveLength(122);
  });

  it('is asked once for a namespace that many requests of a tenant need at the same time', async () => {
    const directory = create();
    const urls = await Promise.all(Array.from({ length: 500 }, () => directory.resolve(`${p}:event-service`, 'town')));
    expect(new Set(urls)).toEqual(new Set(['https://events.example.org']));
    expect(server.requests).toHaveLength(1);
  });

  it('that is down is bridged by known URLs for a day', async () => {
    const directory = create();
    await directory.resolve(`${p}:event-service`);
    server.behave(answerJson({}, 500));
    calls.advance(23 * 3_600_000);
    expect(await directory.resolve(`${p}:event-service`)).toBe('https://events.example.org');
  });

  it('without the namespace has no entry', async () => {
    server.behave(answerJson({ errorMessage: 'no' }, 404));
    await expect(create().resolve('urn:example:nobody:x')).rejects.toMatchObject({ reason: 'absent' });
  });

  it('with an invalid entry serves the others', async () => {
    const bad = [entry(`${p}:a`, 'javascript:alert(1)'), entry(`${p}:b`, 7), null, entry(`${p}:c`, 'http://u:p@h/')];
    server.behave(answerJson([...bad, entry(`${p}:good`, 'http://good')]));
    const directory = create();
    expect(await directory.resolve(`${p}:good`)).toBe('http://good');
    await expect(directory.resolve(`${p}:b`)).rejects.toMatchObject({ reason: 'absent' });
    for (const name of ['a', 'c'])
      await expect(directory.resolve(`${p}:${name}`)).rejects.toMatchObject({ reason: 'unusable' });
  });
});
