// Defines the checks behind `GET /health`. Each check needs one cheap response of a platform service. The checks of the
// identity provider and of the event service always send a request; the others accept a cached response. Kubernetes
// probes do not depend on these checks.
import { fetch } from 'undici';
import { checkIssuer, type IdentityProviderConfig } from '../service/auth/identity-provider.ts';
import type { Urns } from '../service/urn.ts';
import type { Platform } from './platform.ts';

export interface HealthCheckOptions {
  config: IdentityProviderConfig;
  platform: Platform;
  urns: Urns;
}

/**
 * Returns the checks by name. `document` is the namespace and name of a core configuration that this service reads. A
 * check fails if it throws.
 */
export function platformHealthChecks(
  { config, platform, urns }: HealthCheckOptions,
  document: [namespace: string, name: string],
) {
  const passes = (request: Promise<unknown>) => request.then(() => true);
  const eventService = () => platform.directory.resolve(urns.service('event-service:v1'));
  return {
    // The account's token stays valid during an outage, so the identity provider must respond too.
    access: () => passes(Promise.all([platform.account.authenticate(), checkIssuer(config)])),
    directory: () => passes(eventService()),
    tenant: () => passes(platform.tenants.preload()),
    configuration: () => passes(platform.configuration.latest(...document, { core: true })),
    event: async () => responds(await eventService()),
  };
}

/**
 * True if the service responds within 5 s with a status below 500. A 404 passes too, because the service's ingress may
 * use another path for the health check.
 */
async function responds(url: string): Promise<boolean> {
  // A reused connection may be dead (decision 0081).
  const headers = { connection: 'close' };
  const response = await fetch(new URL('/health', url), { headers, signal: AbortSignal.timeout(5_000) });
  await response.body?.cancel();
  return response.status < 500;
}
