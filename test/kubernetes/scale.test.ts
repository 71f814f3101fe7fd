// Measures the cost of a sync of a thousand CoreClients, if none or one of them has changed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SyncWorld, startSyncWorld } from './sync-world.ts';

const size = 1_000;
let world: SyncWorld;

beforeAll(async () => {
  world = await startSyncWorld();
  const names = Array.from({ length: size }, (_, n) => `client-${n}`);
  const create = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift())
      await world.lab.create(name, {
        description: `Client ${name} of a large platform`,
        redirectUris: [`https://${name}.example.org/token-handler/clients/${name}/callback`],
        targets: [
          { id: 'forms', upstream: 'urn:example:platform:form-service' },
          { id: 'files', upstream: 'urn:example:platform:file-service' },
        ],
      });
  };
  await Promise.all(Array.from({ length: 20 }, create));
}, 300_000);
afterAll(() => world?.close());

describe('a thousand CoreClients', () => {
  it('that are new are written in few updates, and each gets a status', async () => {
    const { writes, counts, conditions, failures, milliseconds } = await world.sync();
    expect(failures).toEqual([]);
    expect(counts).toMatchObject({ created: size, statuses: size, events: size });
    expect(conditions).toEqual({
      'Accepted=True': size,
      'Synced=True': size,
      'TargetsResolved=True': size,
      'Shadows=False': size,
      'Ready=True': size,
    });
    expect(writes.length).toBeLessThanOrEqual(4);
    expect(Object.keys(await world.clients())).toHaveLength(size);
    process.stdout.write(
      `A first sync of ${size} CoreClients: ${Math.round(milliseconds)} ms, ${writes.length} writes\n`,
    );
  });

  it('without changes cause no write, and take less than 2 s of processor time', async () => {
    const times: number[] = [];
    for (let run = 0; run < 3; run += 1) {
      const { writes, clusterWrites, counts, milliseconds, busy } = await world.sync();
      expect({ writes, clusterWrites }).toEqual({ writes: [], clusterWrites: [] });
      expect(counts).toMatchObject({ resources: size, unchanged: size });
      times.push(Math.round(busy));
      process.stdout.write(`A sync with nothing changed: ${Math.round(milliseconds)} ms\n`);
    }
    process.stdout.write(
      `A sync of ${size} CoreClients with nothing changed: ${times.join(', ')} ms of processor time\n`,
    );
    expect(Math.min(...times)).toBeLessThan(2_000);
  });

  it('with one change cause one write of the configuration and one of a status', async () => {
    await world.lab.patch('client-500', { spec: { description: 'changed' } });
    const { writes, clusterWrites, counts, milliseconds } = await world.sync();
    expect(writes).toEqual(['PATCH token-handler']);
    expect(clusterWrites).toEqual(['PATCH coreclients/client-500/status']);
    expect(counts).toMatchObject({ updated: 1, unchanged: size - 1 });
    process.stdout.write(`A sync of ${size} CoreClients with one changed: ${Math.round(milliseconds)} ms\n`);
  });
});
