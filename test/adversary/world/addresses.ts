// What honest users and adversaries know of the world: addresses, tokens and sessions, as plain data that a process can be
// sent.
import type { Tenant } from '../../../src/service/auth/identity.ts';
import type { Service } from './replica.ts';
import type { Person } from './sign-in.ts';

export interface Addresses {
  /** In front of the replicas of each service. */
  fronts: Record<Service, string>;
  /** Of each replica. */
  replicas: Record<Service, { url: string; metricsUrl: string }[]>;
  databases: { forms: string; tokenHandler: string; platform: string; administrator: string; names: string[] };
  redisPort: number;
  /** Of the realm `demo`, whose tenant is honest, and of `other`, whose administrator is an adversary. */
  tenants: { honest: Tenant; hostile: Tenant };
  tokens: {
    intake: string;
    administrator: string;
    hostileIntake: string;
    hostileAdministrator: string;
  };
  /** Sessions of one adversary in the honest tenant. */
  mallory: Person[];
  /** Of an adversary in the hostile tenant. */
  trudy: Person;
  /** Ports of 127.0.0.1 that targets of the client lead to and that adversaries may listen on. */
  hostileUpstreamPort: number;
  stuckTlsPort: number;
  /** Environment of a reconciler run. */
  reconcilerEnv: Record<string, string>;
  /** `GET ?to=address` answers the number of mails to an address. */
  mailCountUrl: string;
}
