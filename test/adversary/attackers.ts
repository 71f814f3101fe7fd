// Starts the process of the adversaries, sends orders to it, and waits for its reports. Adversaries run in a separate
// process, so that they do not distort the latencies of honest users and can be killed at any time.
import { fork } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Order, Report } from './adversaries/attacker.ts';
import type { Addresses } from './world/addresses.ts';

export interface Attackers {
  /**
   * Resolves with the adversary's report. If the adversary is still running 60 s after its ordered time, the report
   * says so. An adversary that runs the reconciler may take that long.
   */
  order(order: Omit<Order, 'id'>): Promise<Report>;
  stop(): Promise<void>;
}

const overtime = 60_000;

export function startAttackers(addresses: Addresses): Attackers {
  const child = fork(join(import.meta.dirname, 'adversaries/attacker.ts'), { execArgv: [] });
  // In reality, adversaries use their own machines, so their CPU time must not slow down the product here.
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  child.send(addresses);
  const waiting = new Map<number, (report: Report) => void>();
  let orders = 0;
  child.on('message', (report) => {
    const { id } = report as Report;
    waiting.get(id)?.(report as Report);
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      const failure = `the process of the adversaries ended (${signal ?? code})`;
      for (const [id, settle] of waiting) settle({ id, complaints: [], failure });
      resolve();
    });
  });
  return {
    async order(order) {
      orders += 1;
      const id = orders;
      const { promise, resolve } = Promise.withResolvers<Report>();
      waiting.set(id, resolve);
      child.send({ ...order, id });
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
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
