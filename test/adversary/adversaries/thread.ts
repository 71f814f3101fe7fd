// The thread in which adversaries run, so that their work does not slow down the honest users' clock. It takes an order at a
// time and reports complaints and the end of each.
import { parentPort, workerData } from 'node:worker_threads';
import { createRandom } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';
import { adversaries } from './adversaries.ts';

export interface Order {
  /** Of this order; reports carry it. */
  id: number;
  name: string;
  seed: string;
  milliseconds: number;
}

export interface Report {
  id: number;
  complaints: string[];
  /** Why the adversary could not go on. */
  failure: string | undefined;
}

const addresses: Addresses = workerData;

async function follow({ id, name, seed, milliseconds }: Order): Promise<Report> {
  const complaints = new Set<string>();
  const adversary = adversaries.find((candidate) => candidate.name === name);
  let failure: string | undefined;
  try {
    if (!adversary) throw new Error(`there is no adversary ${name}`);
    const random = createRandom(`${seed}:${name}`);
    const signal = AbortSignal.timeout(milliseconds);
    await adversary.run({ addresses, random, signal, complain: (what) => void complaints.add(what) });
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  return { id, complaints: [...complaints].slice(0, 10), failure };
}

parentPort?.on('message', (order: Order) => void follow(order).then((report) => parentPort?.postMessage(report)));
