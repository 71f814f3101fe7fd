// The checks of `GET /health`: one cheap call to each service that the token handler depends on, and to its stores. It is for
// people and for clients of the older platform; Kubernetes does not probe it.
import type { Platform } from '../platform/platform.ts';
import { responds } from '../platform/responds.ts';
import { clientsName, clientsNamespace } from '../service/clients/client-rules.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import type { Redis } from '../service/redis/redis.ts';
import type { Urns } from '../service/urn.ts';
import { redisProblem } from './sessions/session-redis.ts';

export interface HealthOptions {
  config: { DATABASE_URL: string };
  platform: Platform;
  redis: Redis | undefined;
  urns: Urns;
}

export function createHealthChecks({ config, platform, redis, urns }: HealthOptions) {
  const answers = async (question: Promise<unknown>) => {
    await question;
    return true;
  };
  return {
    access: () => answers(platform.account.token()),
    directory: () => answers(platform.directory.resolve(urns.service('configuration-service:v2'))),
    tenant: () => answers(platform.tenants.preload()),
    configuration: () => answers(platform.configuration.latest(clientsNamespace, clientsName, { core: true })),
    event: async () => responds(await platform.directory.resolve(urns.service('event-service:v1'))),
    db: () => canConnect(config.DATABASE_URL),
    sessions: async () => (await redisProblem(redis)) === undefined,
  };
}
