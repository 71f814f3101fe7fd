// Whether the notification service knows the notification type that this process registers. The service may work with a
// copy of its configuration that is hours old. Meanwhile it responds 404 for the type. The log tells that once, the
// metrics for as long as it lasts.
import type { Logger } from '../service/operations/log.ts';
import { PlatformError } from './platform-error.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface KnownType {
  /** Records that the service does not know the type. Returns the error to throw. */
  missing(): PlatformError;
  /** Records that the service knows the type. */
  found(): void;
}

const service = 'notifications';
/** Seconds after which a caller may try again. */
const retryAfter = 30;

export function createKnownType(options: {
  metrics: Pick<PlatformMetrics, 'failures' | 'registrationUnknown'>;
  log: Logger;
}): KnownType {
  const { metrics, log } = options;
  let isMissing = false;
  metrics.registrationUnknown.set({ service }, 0);
  const change = (next: boolean) => {
    isMissing = next;
    metrics.registrationUnknown.set({ service }, next ? 1 : 0);
  };
  return {
    missing() {
      metrics.failures.inc({ dependency: service, kind: 'unregistered' });
      if (!isMissing)
        log.warn({ dependency: service }, 'registration unknown to the service: codes and notices wait, restart it');
      change(true);
      return new PlatformError(service, 'unregistered', { retryAfter });
    },
    found() {
      if (isMissing) log.info({ dependency: service }, 'registration known to the service');
      change(false);
    },
  };
}
