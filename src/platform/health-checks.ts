// The checks of the platform's services behind `GET /health`: one cheap request to each. No probe of Kubernetes depends on
// them.
import type { Urns } from '../service/urn.ts';
import type { Platform } from './platform.ts';

/** `document`: namespace and name of a core configuration that the service reads. A check that throws has failed. */
export function platformHealthChecks(platform: Platform, urns: Urns, document: [namespace: string, name: string]) {
  const passes = (request: Promise<unknown>) => request.then(() => true);
  const eventService = () => platform.directory.resolve(urns.service('event-service:v1'));
  return {
    access: () => passes(platform.account.token()),
    directory: () => passes(eventService()),
    tenant: () => passes(platform.tenants.preload()),
    configuration: () => passes(platform.configuration.latest(...document, { core: true })),
    event: async () => responds(await eventService()),
  };
}

/** Any response but a 5xx within 5 s: behind an ingress, the path of a service's own health is unknown. */
async function responds(url: string): Promise<boolean> {
  const response = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(5_000) });
  await response.body?.cancel();
  return response.status < 500;
}
