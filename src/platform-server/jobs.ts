// The jobs of the platform server: what each needs, and what is tidied up from time to time.
import type { TaskList } from 'graphile-worker';
import type pg from 'pg';
import { z } from 'zod';
import type { Clock } from '../service/clock.ts';
import type { Logger } from '../service/operations/log.ts';
import type { Metrics } from '../service/operations/metrics.ts';
import type { Urns } from '../service/urn.ts';
import { notificationsHome } from './app.ts';
import { createConfigurationStore } from './configuration/store.ts';
import { platformNamespace } from './directory/entry.ts';
import { createDirectoryStore } from './directory/store.ts';
import { createEventStore } from './events/store.ts';
import type { Mailer } from './mail.ts';
import { createDeliveryStore } from './notifications/deliveries-store.ts';
import { createDeliveryJobs } from './notifications/delivery.ts';
import { createJobQuarantine } from './notifications/job-quarantine.ts';
import { notificationTypes } from './notifications/notification-type.ts';
import { createSenderPolicy } from './notifications/sender.ts';
import type { TenantCode } from './tenant-code.ts';
import { createTenantStore } from './tenants/store.ts';

const day = 86_400_000;
/** Milliseconds for which a repeat of an event is recognised. */
const keyMemory = 30 * day;
const settledEventMemory = 60_000;

const routeEventPayload = z.object({ event: z.string() });
const deliverPayload = z.object({ event: z.string(), typeId: z.string(), subscriberId: z.string() });

export interface PlatformJobs {
  tasks: TaskList;
  upkeep(): Promise<void>;
}

export function createPlatformJobs(options: {
  pool: pg.Pool;
  urns: Urns;
  mailer: Mailer;
  tenantCode: TenantCode;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}): PlatformJobs {
  const { pool, urns, clock } = options;
  const configuration = createConfigurationStore(pool);
  const directory = createDirectoryStore(pool);
  const tenants = createTenantStore(pool);
  const quarantine = createJobQuarantine(options);
  const senders = createSenderPolicy({ domain: options.mailer.domain, domainsOf: tenants.mailDomains });
  const jobs = createDeliveryJobs({
    ...options,
    render: options.tenantCode.render,
    eventsIn: createEventStore,
    subscriberUrn: urns.subscriber,
    typesOf: async (tenant) => notificationTypes(await configuration.latestOfBoth(tenant, notificationsHome)),
    senderOf: async (tenant) =>
      senders.senderOf(tenant, (await configuration.latestOfBoth(tenant, notificationsHome)).tenant),
    async tenantShown(id) {
      const [tenant] = await tenants.find({ id });
      return { id: urns.tenant(id), name: tenant?.name ?? '' };
    },
    managementUrl: async () => (await directory.find(platformNamespace, 'subscriber-app'))?.url ?? '',
  });
  return {
    tasks: {
      'route-event': (payload, { job }) => {
        const { event } = routeEventPayload.parse(payload);
        return quarantine.event(event, job.attempts, () => jobs.routeEvent(event));
      },
      deliver: (payload) => {
        const delivery = deliverPayload.parse(payload);
        return quarantine.delivery(delivery, () => jobs.deliver(delivery));
      },
    },
    async upkeep() {
      const now = clock().getTime();
      await createEventStore(pool).forgetKeys(new Date(now - keyMemory));
      await createDeliveryStore(pool).forgetEvents(new Date(now - settledEventMemory));
      await quarantine.upkeep();
    },
  };
}
