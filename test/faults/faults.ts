// The network faults, and the connections that they affect. The faults of the stores themselves are in stores/.
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../adversary/random.ts';
import type { FaultProxy } from './fault-proxy.ts';

/** Names of the groups of proxies that fail together. */
export const links = [
  'Postgres',
  'Redis',
  'identity provider',
  'mail server',
  'platform services',
  'upstream',
] as const;
export type LinkName = (typeof links)[number];

export interface NetworkFault {
  name: string;
  about: string;
  /** Causes the fault, and resolves when it has lasted for `milliseconds`. The caller heals the proxies afterwards. */
  run(proxies: FaultProxy[], milliseconds: number, random: Random): Promise<void>;
}

const forAll = (proxies: FaultProxy[], work: (proxy: FaultProxy) => unknown) => Promise.all(proxies.map(work));

export const networkFaults: NetworkFault[] = [
  {
    name: 'latency',
    about: 'each packet is 50 to 300 ms late, with as much jitter',
    async run(proxies, milliseconds, random) {
      const latency = random.integer(50, 300);
      await forAll(proxies, (proxy) => proxy.set({ latency, jitter: latency }));
      await delay(milliseconds);
    },
  },
  {
    name: 'low bandwidth',
    about: '4 to 32 KiB per second for each connection',
    async run(proxies, milliseconds, random) {
      const bytesPerSecond = random.integer(4, 32) * 1_024;
      await forAll(proxies, (proxy) => proxy.set({ bytesPerSecond }));
      await delay(milliseconds);
    },
  },
  {
    name: 'resets',
    about: 'all open connections are reset every 20 to 600 ms',
    async run(proxies, milliseconds, random) {
      for (const end = Date.now() + milliseconds; Date.now() < end; await delay(random.integer(20, 600)))
        await forAll(proxies, (proxy) => proxy.reset());
    },
  },
  {
    name: 'outage',
    about: 'connections are reset, and new ones are refused',
    async run(proxies, milliseconds) {
      await forAll(proxies, (proxy) => proxy.refuse());
      await delay(milliseconds);
    },
  },
  {
    name: 'blackhole',
    about: 'nothing arrives in either direction; what was sent arrives late, after the end',
    async run(proxies, milliseconds) {
      await forAll(proxies, (proxy) => proxy.set({ lost: 'both' }));
      await delay(milliseconds);
    },
  },
  {
    name: 'lost responses',
    about: 'requests arrive and are processed, but their responses are lost and the connections reset',
    async run(proxies, milliseconds) {
      await forAll(proxies, (proxy) => proxy.set({ lost: 'responses' }));
      await delay(milliseconds);
      await forAll(proxies, (proxy) => proxy.reset());
    },
  },
  {
    name: 'half-open',
    about: 'the open connections are dead, but neither end learns it; new ones work',
    async run(proxies, milliseconds) {
      await forAll(proxies, (proxy) => proxy.strand());
      await delay(milliseconds);
    },
  },
];
