// Defines the interface `Adversary`, and `Attack`, which the run passes to an adversary.
import type { Failure } from '../honest/recorder.ts';
import type { Random } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';

export interface Attack {
  addresses: Addresses;
  random: Random;
  /** Aborted when the adversary must stop and clean up. */
  signal: AbortSignal;
  /** Reports a defect that the adversary found, such as access to another person's data. */
  complain(what: string): void;
}

export interface Adversary {
  name: string;
  /** What the adversary does; --help prints this text. */
  about: string;
  /** True if `failure`, which an honest user saw while this adversary worked, is documented behaviour. */
  excuses?(failure: Failure): boolean;
  /**
   * True if the adversary needs Postgres and Redis, or complains about a status that an outage of a store causes. Such
   * an adversary cannot run together with one that causes faults of the stores.
   */
  needsStores?: boolean;
  /** Milliseconds after the adversary's end during which honest users may still see its effects; by default 300. */
  recovery?: number;
  run(attack: Attack): Promise<void>;
}

const platformKinds = ['create', 'send code', 'read', 'submit', 'read register', 'write register', 'sign-in'];

/**
 * True if a failure is documented behaviour while Postgres or Redis is unavailable: 503 with Retry-After, or 502 if a
 * platform service that the request needs has lost its database. Wrong data and lost sessions are never excused.
 */
export function isStoreFault({ status, hasRetryAfter, isWrong, kind }: Failure): boolean {
  if (isWrong) return false;
  return (status === 503 && hasRetryAfter) || (status === 502 && platformKinds.includes(kind));
}
