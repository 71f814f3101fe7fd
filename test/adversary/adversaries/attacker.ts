// The process in which adversaries run. Its first message contains the addresses of the services. Each later message
// orders an attack. When the attack has ended, the process reports the adversary's complaints.
import { createRandom } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';
import { adversaries } from './adversaries.ts';

export interface Order {
  /** Identifies the order in its report. */
  id: number;
  name: string;
  seed: string;
  milliseconds: number;
}

export interface Report {
  id: number;
  complaints: string[];
  /** The error of the adversary; undefined if it did not fail. */
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
