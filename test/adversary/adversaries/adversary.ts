// The interface of an adversary, and what the run passes to it.
import type { Failure } from '../honest/recorder.ts';
import type { Random } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';

export interface Attack {
  addresses: Addresses;
  random: Random;
  /** Aborted when the adversary must stop and clean up. */
  signal: AbortSignal;
  /** Reports a response that the adversary must not get. */
  complain(what: string): void;
}

export interface Adversary {
  name: string;
  /** What it does, for --help. */
  about: string;
  /** True for failures of honest users that are documented behaviour while this adversary works. */
  excuses?(failure: Failure): boolean;
  /**
   * True if the adversary uses the database. It then cannot run together with an adversary that cuts database
   * connections.
   */
  needsDatabase?: boolean;
  /** Milliseconds after its end in which honest users may still be affected; by default 300. */
  recovery?: number;
  run(attack: Attack): Promise<void>;
}

const platformKinds = ['create', 'send code', 'read', 'submit', 'read register', 'write register', 'sign-in'];

/**
 * True if a failure is documented behaviour while a store is lost: 503 with Retry-After, or 502 if a platform service
 * has lost its store. Wrong data and lost sessions are never excused.
 */
export function isStoreFault({ status, hasRetryAfter, isWrong, kind }: Failure): boolean {
  if (isWrong) return false;
  return (status === 503 && hasRetryAfter) || (status === 502 && platformKinds.includes(kind));
}
