// Tests what the metrics of jobs export while the database works, and while it is down.
import prom from 'prom-client';
import { expect, it } from 'vitest';
import { createJobMetrics } from './job-metrics.ts';

it('the number and the age of waiting jobs are exported by queue, and are absent while they cannot be read', async () => {
  const registry = new prom.Registry();
  let isDown = false;
  createJobMetrics({
    registry,
    clock: () => new Date(60_000),
    queues: {
      events: async () => ({ count: 0, oldest: null }),
      async deliveries() {
        if (isDown) throw new Error('The database is down.');
        return { count: 3, oldest: new Date(45_000) };
      },
    },
  });
  const samples = async () => (await registry.metrics()).split('\n').filter((line) => /^formgate/.test(line));
  const idle = ['formgate_jobs_waiting{queue="events"} 0', 'formgate_jobs_oldest_waiting_seconds{queue="events"} 0'];
  const all = [
    idle[0],
    'formgate_jobs_waiting{queue="deliveries"} 3',
    idle[1],
    'formgate_jobs_oldest_waiting_seconds{queue="deliveries"} 15',
  ];
  expect(await samples()).toEqual(all);
  isDown = true;
  expect(await samples()).toEqual(idle);
  isDown = false;
  expect(await samples()).toEqual(all);
});
