// Tests which times of a last success the form service exports for the parts of the reconciler.
import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../../../test/support/postgres.ts';
import { systemClock } from '../../service/clock.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createRunMetrics } from './metrics.ts';
import { formMigrations } from './migrations.ts';
import { readRunHistory, writeRun } from './run-store.ts';

const finished = new Date('2026-03-20T10:00:00Z');

it('exports 0 for a part that runs include but that never succeeded, and nothing for a part that is turned off', async () => {
  const database = await createTestDatabase(formMigrations.directory);
  onTestFinished(() => database.drop());
  const { registry } = createMetrics();
  createRunMetrics({ registry, readHistory: () => readRunHistory(database.pool), clock: systemClock });
  const exported = async () =>
    (await registry.metrics()).match(/(?<=^formgate_reconciler_last_success_timestamp_seconds\{).*$/gm) ?? [];
  const record = (generation: number, expirySucceeded: boolean | null, clientsSucceeded: boolean | null) =>
    writeRun(database.pool, {
      ...{ generation: String(generation), started: finished, finished, outcome: 'succeeded' },
      ...{ expirySucceeded, clientsSucceeded, counts: {}, conditions: null, oldestOverdue: null },
      ...{ overdueDeletions: null, formsByStatus: null, retention: null },
    });
  expect(await exported()).toEqual([]);
  await record(1, false, null);
  expect(await exported()).toEqual(['part="expire"} 0']);
  await record(2, true, false);
  expect(await exported()).toEqual([`part="expire"} ${finished.getTime() / 1_000}`, 'part="clients"} 0']);
});
