// Checks how long the forms of a definition are kept for various configurations of the definition.
import { describe, expect, it } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import { createCircuit } from '../../platform/circuit.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { createPlatformMetrics } from '../../platform/platform-metrics.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createRetentionReader } from './retention.ts';

const day = 86_400_000;
const defaults = { warnBefore: 3 * day, lockAfter: 15 * day, deleteAfter: 15 * day };

/**
 * Creates a reader for tenants with one document of definitions each. If a tenant has an Error instead, reading its
 * document throws that Error.
 */
function readerOf(tenants: Record<string, Record<string, unknown> | Error>) {
  return createRetentionReader({
    defaults,
    configuration: {
      async activeOrLatest(namespace, _name, { tenantId = '' }) {
        const document = tenants[tenantId];
        if (document instanceof Error) throw document;
        const configuration = namespace === 'platform' ? document : {};
        return { revision: 1, configuration };
      },
    },
  });
}

const key = (definitionId: string, tenantId = 'tenant') => ({ tenantId, definitionId });

describe('the periods of a definition', () => {
  it.each([
    [undefined, {}],
    [null, {}],
    [{}, {}],
    [{ lockAfter: 'P30D' }, { lockAfter: 30 * day }],
    [{ warnBefore: 'P0D' }, { warnBefore: 0 }],
    [{ deleteAfter: 'P2W' }, { deleteAfter: 14 * day }],
    [
      { warnBefore: 'PT12H', lockAfter: 'P1DT1S', deleteAfter: 'PT1M' },
      { warnBefore: day / 2, lockAfter: day + 1_000, deleteAfter: 60_000 },
    ],
  ])('with %j are the defaults, except %j', async (retention, changes) => {
    const read = readerOf({ tenant: { permit: { name: 'Permit', retention } } });
    expect(await read([key('permit')])).toEqual({
      policies: [{ ...key('permit'), retention: { ...defaults, ...changes } }],
      skipped: [],
    });
  });
});

describe('a warning that is not shorter than the lock', () => {
  it.each([
    [{ lockAfter: 'P3D' }, { lockAfter: 3 * day }],
    [{ warnBefore: 'P20D' }, {}],
    [{ warnBefore: 'P20D', lockAfter: 'P15D' }, {}],
  ])('is ignored, so that new drafts get no warning: %j', async (retention, changes) => {
    const read = readerOf({ tenant: { permit: { name: 'Permit', retention } } });
    expect((await read([key('permit')])).policies).toEqual([
      { ...key('permit'), retention: { ...defaults, warnBefore: 0, ...changes }, ignoresWarning: true },
    ]);
  });

  it('is not reported if the definition asks for no warning', async () => {
    const retention = { warnBefore: 'P0D', lockAfter: 'P0D' };
    const read = readerOf({ tenant: { permit: { name: 'Permit', retention } } });
    expect((await read([key('permit')])).policies[0]).not.toHaveProperty('ignoresWarning');
  });
});

describe('a definition that cannot be read', () => {
  it('is skipped with a reason, and the others are read', async () => {
    const read = readerOf({
      tenant: {
        permit: {},
        wrong: { retention: { lockAfter: 'P1Y' } },
        endless: { retention: { lockAfter: 'P999999D' } },
      },
      away: new PlatformError('configuration', 'unreachable'),
      refused: new PlatformError('configuration', 'rejected'),
    });
    const keys = [key('wrong'), key('x', 'away'), key('x', 'refused'), key('endless'), key('permit')];
    const { policies, skipped } = await read(keys);
    expect(skipped.map(({ definitionId, tenantId, reason }) => `${tenantId} ${definitionId} ${reason}`)).toEqual([
      'tenant wrong invalid',
      'away x unreadable',
      'refused x invalid',
      'tenant endless invalid',
    ]);
    expect(policies).toEqual([{ ...key('permit'), retention: defaults }]);
  });

  it.each([
    ['is too large', { reason: 'oversized' }],
    ['is answered with 500', { upstreamStatus: 500 }],
  ])('because its document %s is a failure of its tenant, not of the service', async (_, options) => {
    const read = readerOf({ tenant: {}, lost: new PlatformError('configuration', 'failed', options) });
    const { policies, skipped } = await read([key('permit', 'lost'), key('permit')]);
    expect(skipped).toMatchObject([{ ...key('permit', 'lost'), reason: 'failing' }]);
    expect(policies).toHaveLength(1);
  });

  it('is unreadable if the service fails for every definition', async () => {
    const error = new PlatformError('configuration', 'failed', { upstreamStatus: 500 });
    const read = readerOf({ tenant: error });
    const { skipped } = await read([key('permit'), key('licence')]);
    expect(skipped).toEqual([
      { ...key('permit'), reason: 'unreadable', error },
      { ...key('licence'), reason: 'unreadable', error },
    ]);
  });

  it('is a failure of its tenant if the service could read another definition, even an invalid one', async () => {
    const error = new PlatformError('configuration', 'failed', { upstreamStatus: 500 });
    const read = readerOf({ tenant: { wrong: { retention: { lockAfter: 'P1Y' } } }, lost: error });
    const { skipped } = await read([key('wrong'), key('permit', 'lost')]);
    expect(skipped.map(({ reason }) => reason)).toEqual(['invalid', 'failing']);
  });

  it('because another service fails is unreadable, not a failure of its tenant', async () => {
    const error = new PlatformError('access', 'failed', { upstreamStatus: 500 });
    const { skipped } = await readerOf({ tenant: {}, lost: error })([key('permit'), key('permit', 'lost')]);
    expect(skipped).toEqual([{ ...key('permit', 'lost'), reason: 'unreadable', error }]);
  });

  it('is not read again after a pause unless an open circuit prevented the read', async () => {
    let reads = 0;
    const read = createRetentionReader({
      defaults,
      // The test would time out if the reader paused.
      pause: 2 ** 31 - 1,
      configuration: {
        async activeOrLatest() {
          reads += 1;
          throw new PlatformError('configuration', 'timeout');
        },
      },
    });
    expect((await read([key('permit')])).skipped).toMatchObject([{ reason: 'unreadable' }]);
    expect(reads).toBe(1);
  });

  const keysOf = (tenantId: string, count: number) =>
    Array.from({ length: count }, (_, nth) => key(`form-${nth}`, tenantId));

  /** Creates a reader with a real circuit breaker, which opens because the tenant `hanging` fails. */
  function readerWithCircuit(times: { resetMs?: number; pause?: number } = {}) {
    const metrics = createPlatformMetrics(createMetrics());
    const circuit = createCircuit({ ...times, service: 'configuration', metrics, log: captureLog().log });
    return createRetentionReader({
      ...times,
      defaults,
      configuration: {
        activeOrLatest: (_namespace, _name, { tenantId }) =>
          circuit.run(async () => {
            if (tenantId === 'hanging') throw new PlatformError('configuration', 'timeout');
            return { revision: 1, configuration: {} };
          }),
      },
    });
  }

  it('is read after a pause if only the open circuit prevented it, so that other tenants’ forms expire', async () => {
    const read = readerWithCircuit({ resetMs: 50, pause: 100 });
    const { policies, skipped } = await read([...keysOf('hanging', 80), ...keysOf('tenant', 200)]);
    expect(policies).toHaveLength(200);
    expect(skipped).toHaveLength(80);
  });

  it('is read after a pause that by default lasts until the circuit lets a read through', async () => {
    const { policies } = await readerWithCircuit()([...keysOf('hanging', 8), ...keysOf('tenant', 1)]);
    expect(policies).toEqual([{ ...key('form-0', 'tenant'), retention: defaults }]);
  });
});

describe('a period that is longer than a date can express', () => {
  it.each(['warnBefore', 'lockAfter', 'deleteAfter'])('makes the definition invalid: %s', async (period) => {
    const read = readerOf({ tenant: { permit: { retention: { [period]: 'P999999D' } } } });
    expect(await read([key('permit')])).toEqual({ policies: [], skipped: [{ ...key('permit'), reason: 'invalid' }] });
  });
});

describe('many definitions', () => {
  it('are each read once, at most eight at a time, from a cache that may be old', async () => {
    const reads: unknown[] = [];
    let [running, most] = [0, 0];
    const read = createRetentionReader({
      defaults,
      configuration: {
        async activeOrLatest(_namespace, _name, _owner, options) {
          reads.push(options);
          running += 1;
          most = Math.max(most, running);
          await new Promise(setImmediate);
          running -= 1;
          return { revision: 1, configuration: Object.fromEntries(keys.map(({ definitionId }) => [definitionId, {}])) };
        },
      },
    });
    const keys = Array.from({ length: 20 }, (_, index) => key(`definition-${index}`));
    const { policies } = await read(keys);
    expect(policies.map(({ definitionId }) => definitionId)).toEqual(keys.map(({ definitionId }) => definitionId));
    expect(most).toBe(8);
    expect(reads).toEqual(Array(20).fill({ permission: false }));
  });
});

describe('a definition that was removed', () => {
  it('leaves the default periods to its forms', async () => {
    const read = readerOf({ tenant: { permit: {} } });
    expect(await read([key('absent')])).toEqual({
      policies: [{ ...key('absent'), retention: defaults }],
      skipped: [],
    });
  });
});
