// What `GET /health` of the form service checks: the platform's services and the database.
import { platformHealthChecks } from '../platform/health-checks.ts';
import type { Platform } from '../platform/platform.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import type { Urns } from '../service/urn.ts';

export function createHealthChecks(options: { config: { DATABASE_URL: string }; platform: Platform; urns: Urns }) {
  return {
    ...platformHealthChecks(options.platform, options.urns, ['platform', 'form-service']),
    db: () => canConnect(options.config.DATABASE_URL),
  };
}
