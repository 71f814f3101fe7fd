// What an adversary is, and what it gets to work with.
import type { Failure } from '../honest/recorder.ts';
import type { Random } from '../random.ts';
import type { Addresses } from '../world/addresses.ts';

export interface Attack {
  addresses: Addresses;
  random: Random;
  /** Aborted when the adversary's time is over: it then stops and cleans up. */
  signal: AbortSignal;
  /** A response that the adversary should not have got, in words. */
  complain(what: string): void;
}

export interface Adversary {
  name: string;
  /** What it does, for --help. */
  about: string;
  /** A failure of an honest user that is documented while this adversary works. */
  excuses?(failure: Failure): boolean;
  /** It works on the database itself, so it cannot work while another adversary cuts connections to it. */
  needsDatabase?: boolean;
  /** Milliseconds after its end in which honest users may still notice it; 300 unless told. */
  recovery?: number;
  run(attack: Attack): Promise<void>;
}

const platformKinds = ['create', 'send code', 'read', 'submit', 'read register', 'write register', 'sign-in'];

/**
 * The loss of a store affects everybody: requests are answered with 503 and Retry-After, or with 502 where a platform
 * service lost its store. Nobody reads wrong data, and nobody is signed out.
 */
export function isStoreFault({ status, hasRetryAfter, isWrong, kind }: Failure): boolean {
  if (isWrong) return false;
  return (status === 503 && hasRetryAfter) || (status === 502 && platformKinds.includes(kind));
}
