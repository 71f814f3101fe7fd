// The process that runs the adversaries. The first message to this process contains the addresses of the services. Each
// later message orders an attack. After the attack, the process sends back the adversary's complaints.
import { createRandom } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';
import { adversaries } from './adversaries.ts';

export interface Order {
  /** The number of this order. The report of the attack has the same `id`. */
  id: number;
  name: string;
  seed: string;
  milliseconds: number;
}

export interface Report {
  id: number;
  complaints: string[];
  /** The adversary's error message; undefined if the adversary did not fail. */
  failure: string | undefined;
}

async function follow(addresses: Addresses, { id, name, seed, milliseconds }: Order): Promise<Report> {
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

process.once('message', (addresses) => {
  process.on('message', (order) => {
    void follow(addresses as Addresses, order as Order).then((report) => process.send?.(report));
  });
});
// The parent process disconnects when the run has ended.
process.once('disconnect', () => process.exit(0));
