// The thread of the adversaries, seen from the run: sends orders and waits for reports.
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Order, Report } from './adversaries/thread.ts';
import type { Addresses } from './world/addresses.ts';

export interface Attackers {
  /** Resolves when the adversary has stopped; it gets 60 s more than its time, for a reconciler run. */
  order(order: Omit<Order, 'id'>): Promise<Report>;
  stop(): Promise<void>;
}

const overtime = 60_000;

export function startAttackers(addresses: Addresses): Attackers {
  const worker = new Worker(new URL('./adversaries/thread.ts', import.meta.url), { workerData: addresses });
  const waiting = new Map<number, (report: Report) => void>();
  let orders = 0;
  worker.on('message', (report: Report) => waiting.get(report.id)?.(report));
  worker.on('error', ({ message }) => {
    for (const [id, settle] of waiting)
      settle({ id, complaints: [], failure: `the adversaries’ thread ended: ${message}` });
  });
  return {
    async order(order) {
      orders += 1;
      const id = orders;
      const { promise, resolve } = Promise.withResolvers<Report>();
      waiting.set(id, resolve);
      worker.postMessage({ ...order, id });
      const late = new AbortController();
      const patience = delay(order.milliseconds + overtime, undefined, { signal: late.signal }).then(
        () => ({ id, complaints: [], failure: 'it did not stop in time' }),
        () => promise,
      );
      const report = await Promise.race([promise, patience]);
      late.abort();
      waiting.delete(id);
      return report;
    },
    stop: async () => void (await worker.terminate()),
  };
}
