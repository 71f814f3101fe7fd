// Asks the notification service whether it knows the notification type that this process has registered. Asks at the
// start and then every hour, or every minute while the service does not know the type.
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventName, KnownType } from './known-type.ts';
import type { Notifications } from './notifications.ts';
import type { TenantDirectory } from './tenants.ts';

/** Milliseconds between two requests: `known` while the service knows all events of the type, otherwise `unknown`. */
export interface WatchPace {
  known: number;
  unknown: number;
}

export interface TypeWatchOptions {
  notifications: Pick<Notifications, 'readType'>;
  tenants: Pick<TenantDirectory, 'any'>;
  known: KnownType;
  typeId: string;
  events: readonly EventName[];
  signal: AbortSignal;
  pace?: WatchPace | undefined;
}

/**
 * Repeatedly asks the notification service for the type until the signal aborts. Call it only after the type is
 * registered: the first request makes the service read its configuration, and the service caches this configuration for
 * hours. Never rejects.
 */
export async function watchType(options: TypeWatchOptions): Promise<void> {
  const { notifications, tenants, known, typeId, events, signal } = options;
  const pace = options.pace ?? { known: 3_600_000, unknown: 60_000 };
  while (!signal.aborted) {
    let isCurrent = false;
    try {
      // The type is the same for every tenant, but each call needs one tenant.
      const tenant = await tenants.any();
      const found = tenant && (await notifications.readType(tenant.id, typeId));
      if (found) isCurrent = known.compare(found, events);
      else if (tenant) known.missing();
    } catch {
      // The client has logged the failure.
    }
    await sleep(isCurrent ? pace.known : pace.unknown, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
