// What `GET /health` asks: one cheap question to each service that the form service depends on, and to its database.
// It is for people and for clients of the older platform; no probe of Kubernetes hangs on it.
import type { Platform } from '../platform/platform.ts';
import { responds } from '../platform/responds.ts';
import { canConnect } from '../service/postgres/fresh-connection.ts';
import type { Urns } from '../service/urn.ts';

export function createHealthChecks(options: { config: { DATABASE_URL: string }; platform: Platform; urns: Urns }) {
  const { config, platform, urns } = options;
  const place = { core: true } as const;
  const answers = async (question: Promise<unknown>) => {
    await question;
    return true;
  };
  return {
    access: () => answers(platform.account.token()),
    directory: () => answers(platform.directory.resolve(urns.service('event-service:v1'))),
    tenant: () => answers(platform.tenants.preload()),
    configuration: () => answers(platform.configuration.latest('platform', 'form-service', place)),
    event: async () => responds(await platform.directory.resolve(urns.service('event-service:v1'))),
    db: () => canConnect(config.DATABASE_URL),
  };
}
