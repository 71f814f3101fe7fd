// Plans the faults of a run: their order, their duration and the connections that they affect. The seed and the number
// of faults determine the plan.
import { createRandom } from '../adversary/random.ts';
import { type LinkName, links, networkFaults } from './faults.ts';

export interface Step {
  /** Name of the step, such as `blackhole of Redis`. */
  name: string;
  /** Name of a network fault, and the connections that it affects; undefined for a fault of a store. */
  network?: { fault: string; link: LinkName };
  /** Duration of a network fault in milliseconds. */
  milliseconds: number;
  /** Seed from which the fault makes its random choices, such as the latency. */
  seed: string;
}

/**
 * `storeFaults` are the names of the faults of the stores themselves. A store fault is repeated only after all store
 * faults were used. The same applies to network faults and to connections.
 */
export function plan(seed: string, count: number, storeFaults: string[]): Step[] {
  const random = createRandom(seed);
  const endless = <T>(values: readonly T[]) => {
    let left: T[] = [];
    return () => {
      if (left.length === 0) left = random.shuffle(values);
      return left.shift() as T;
    };
  };
  const [store, link, fault] = [endless(storeFaults), endless(links), endless(networkFaults)];
  return Array.from({ length: count }, (_, index): Step => {
    const common = { milliseconds: random.integer(1_500, 5_000), seed: `${seed}:${index}` };
    // Every third fault, beginning with the first, is a fault of a store.
    if (index % 3 === 0) return { ...common, name: store() };
    const network = { fault: fault().name, link: link() };
    return { ...common, network, name: `${network.fault} of ${network.link}` };
  });
}
