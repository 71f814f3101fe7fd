// Tests when the entries of a configuration document are parsed, and what the log says about them.
import prom from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import type { Client, ParsedClient } from './client.ts';
import { ClientDocument } from './client-document.ts';
import { createCatalogMetrics } from './client-metrics.ts';

let log: CapturedLog;
let parsed: string[];
/** Milliseconds that it takes to parse an entry. */
let cost: number;
let now: number;
beforeEach(() => {
  [log, parsed, cost, now] = [captureLog(), [], 0, 1_000_000];
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => void vi.restoreAllMocks());

const clientOf = (id: string) => ({ id, redirectUris: [] as string[] }) as Client;
const valid = (id: string): ParsedClient => ({ client: clientOf(id), unknownFields: [], leftOut: [] });

function open(ids: string[], parse: (id: string) => ParsedClient = valid): ClientDocument {
  return new ClientDocument(new Map(ids.map((id) => [id, {}])), {
    ...{ place: 'tenant', tenantId: 'urn:tenant:demo', log: log.log },
    counts: createCatalogMetrics({ registry: new prom.Registry() }),
    parse(id) {
      parsed.push(id);
      now += cost;
      return parse(id);
    },
  });
}
const names = (count: number) => Array.from({ length: count }, (_, nth) => `client ${nth}`);

describe('a client', () => {
  it('is parsed once, when it is first needed', () => {
    const document = open(['web', 'app']);
    expect([document.has('web'), document.has('other'), parsed]).toEqual([true, false, []]);
    expect(document.get('other')).toBeUndefined();
    expect(document.get('web')).toBe(document.get('web'));
    expect(parsed).toEqual(['web']);
  });
});

describe('a list of clients', () => {
  it('is parsed without a pause if that takes less than 10 ms', async () => {
    const listed = open(names(50)).all();
    expect(parsed).toHaveLength(50);
    expect((await listed).size).toBe(50);
  });

  it('lets other requests run each time that 10 ms have passed', async () => {
    cost = 5;
    const listed = open(names(5)).all();
    expect(parsed).toHaveLength(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(parsed).toHaveLength(4);
    expect((await listed).size).toBe(5);
  });
});

describe('the log of a document', () => {
  const invalid = { problems: [{ field: 'targets', detail: 'must be a list' }] };
  it.each<[string, ParsedClient, object]>([
    ['says that an invalid client is left out', invalid, { reasons: ['targets: must be a list'] }],
    [
      'says that unknown fields are ignored',
      { client: clientOf('web'), unknownFields: ['colour'], leftOut: [] },
      { fields: ['colour'] },
    ],
    [
      'says that redirect URIs are left out',
      { client: clientOf('web'), unknownFields: [], leftOut: ['has a fragment'] },
      { reasons: ['has a fragment'] },
    ],
  ])('%s', (_what, outcome, details) => {
    open(['web'], () => outcome).get('web');
    const about = { level: 'warn', client: 'web', place: 'tenant', tenant: 'urn:tenant:demo' };
    expect(log.lines()).toMatchObject([{ ...about, ...details }]);
    expect(log.lines()[0]?.msg).toMatch(/^(?:invalid client left out|client has unknown|invalid redirect URIs left)/);
  });

  it('is silent about valid clients', () => {
    open(['web']).get('web');
    expect(log.lines()).toEqual([]);
  });
});
