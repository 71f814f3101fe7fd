// What `GET /health` of the token handler checks: the platform's services, the database and Redis.
import { platformHealthChecks } from '../platform/health-checks.ts';
import type { Platform } from '../platform/platform.ts';
import { clientsName, clientsNamespace } from '../service/clients/client-rules.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import type { Urns } from '../service/urn.ts';
import type { SessionParts } from './session-parts.ts';

export interface HealthOptions {
  config: { DATABASE_URL: string };
  platform: Platform;
  sessions: Pick<SessionParts, 'redisProblem'>;
  urns: Urns;
}

export function createHealthChecks({ config, platform, sessions, urns }: HealthOptions) {
  return {
    ...platformHealthChecks(platform, urns, [clientsNamespace, clientsName]),
    db: () => canConnect(config.DATABASE_URL),
    sessions: async () => (await sessions.redisProblem()) === undefined,
  };
}
