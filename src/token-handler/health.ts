// What `GET /health` of the token handler checks: the platform's services, the database and Redis.
import { platformHealthChecks } from '../platform/health-checks.ts';
import type { Platform } from '../platform/platform.ts';
import { clientsName, clientsNamespace } from '../service/clients/client-rules.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import type { Redis } from '../service/redis/redis.ts';
import type { Urns } from '../service/urn.ts';
import { redisProblem } from './sessions/store.ts';

export interface HealthOptions {
  config: { DATABASE_URL: string };
  platform: Platform;
  redis: Redis | undefined;
  urns: Urns;
}

export function createHealthChecks({ config, platform, redis, urns }: HealthOptions) {
  return {
    ...platformHealthChecks(platform, urns, [clientsNamespace, clientsName]),
    db: () => canConnect(config.DATABASE_URL),
    sessions: async () => (await redisProblem(redis)) === undefined,
  };
}
