// The dependencies that all modules of a token handler share.
import type pg from 'pg';
import type { Platform } from '../platform/platform.ts';
import type { SigningKeys } from '../service/auth/signing-keys.ts';
import type { Clock } from '../service/clock.ts';
import type { KeyRing } from '../service/keys/key-ring.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Redis } from '../service/redis/redis.ts';
import type { Urns } from '../service/urn.ts';
import type { TokenHandlerConfig } from './config.ts';
import type { ProviderAddresses } from './provider-addresses.ts';
import type { DiscoverProvider } from './provider-discovery.ts';

export interface Foundation {
  config: TokenHandlerConfig;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  urns: Urns;
  platform: Platform;
  addresses: ProviderAddresses;
  /** The public keys that verify tokens of the identity provider. */
  signingKeys: SigningKeys;
  discover: DiscoverProvider;
  keys: KeyRing;
  pool: pg.Pool;
  /** Undefined if sessions are kept in memory. */
  redis: Redis | undefined;
}
