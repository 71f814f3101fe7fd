// Addresses, tokens and sessions that honest users and adversaries use, as plain data that can be sent to a process.
import type { Tenant } from '../../../src/service/auth/identity.ts';
import type { Service } from './replica.ts';
import type { Person } from './sign-in.ts';

export interface Addresses {
  /** URL of each service's front (front.ts), which distributes connections over the service's replicas. */
  fronts: Record<Service, string>;

  replicas: Record<Service, { url: string; metricsUrl: string }[]>;
  databases: { forms: string; tokenHandler: string; platform: string; administrator: string; names: string[] };
  redisPort: number;
  /**
   * The honest tenant has the realm `demo`. The hostile tenant has the realm `other`, and its administrator is an
   * adversary.
   */
  tenants: { honest: Tenant; hostile: Tenant };
  tokens: {
    intake: string;
    administrator: string;
    hostileIntake: string;
    hostileAdministrator: string;
  };
  /** Sessions of Mallory, an adversary in the honest tenant. */
  mallory: Person[];
  /** Session of Trudy, an adversary in the hostile tenant. */
  trudy: Person;
  /**
   * The client's targets `hostile` and `stuck` lead to this port and to `stuckTlsPort`, both on 127.0.0.1. Adversaries
   * may listen on these ports.
   */
  hostileUpstreamPort: number;
  stuckTlsPort: number;
  /** Environment variables for a run of the reconciler. */
  reconcilerEnv: Record<string, string>;
  /** `GET ?to=address` returns the number of mails to an address. */
  mailCountUrl: string;
}
