// The hooks through which tests make the platform server imitate the public platform's services. The default,
// `ownBehaviour`, imitates nothing.
import type { Route } from '../service/http/http-app.ts';
import type { Queryable } from '../service/postgres/postgres.ts';
import type { ChangeOptions, ConfigurationChanges } from './configuration/changes.ts';
import type { ConfigurationStore } from './configuration/store.ts';
import { idempotencyKey } from './events/event.ts';
import type { DeliveryJobs, DeliveryOptions } from './notifications/delivery.ts';
import { createSubscriberStore, type FindOrCreate } from './notifications/subscribers-store.ts';
import type { TenantCode } from './tenant-code.ts';

/** What the event service and the notification service read of their configuration. */
export type ConsumerReads = Pick<ConfigurationStore, 'latestOfBoth' | 'latestVersion' | 'memberText'>;

export interface Behaviour {
  routes(routes: Route[]): Route[];
  /** Returns the store that the routes of the configuration service read. */
  configurationReads(store: ConfigurationStore): ConfigurationStore;
  /** Returns the store from which the event service and the notification service read their configuration. */
  consumerReads(store: ConfigurationStore): ConsumerReads;
  changes(options: ChangeOptions, changes: ConfigurationChanges): ConfigurationChanges;
  /** Returns the key by which a repeated event is recognised. */
  eventKey(context: Record<string, unknown>): string | undefined;
  findOrCreate(database: Queryable): FindOrCreate;
  /** The channels to which codes can be sent. Undefined if responses do not list the channels. */
  codeChannels: string[] | undefined;
  /** True if a code works only once. False if it works until it expires. */
  codesWorkOnce: boolean;
  /**
   * Returns the number of notices that are still to be sent to a subscriber. Undefined if responses do not contain this
   * number.
   */
  pendingNotices(database: Queryable): (tenant: string, id: string) => Promise<number | undefined>;
  jobs(options: DeliveryOptions, jobs: DeliveryJobs): DeliveryJobs;
  render: (render: TenantCode['render']) => TenantCode['render'];
  /** Returns the number of jobs that run at the same time. */
  concurrency(configured: number): number;
}

export const ownBehaviour: Behaviour = {
  routes: (routes) => routes,
  configurationReads: (store) => store,
  consumerReads: (store) => store,
  changes: (_options, changes) => changes,
  eventKey: idempotencyKey,
  findOrCreate: (database) => createSubscriberStore(database).findOrCreate,
  codeChannels: ['email'],
  codesWorkOnce: true,
  pendingNotices: (database) => createSubscriberStore(database).pendingNotices,
  jobs: (_options, jobs) => jobs,
  render: (render) => render,
  concurrency: (configured) => configured,
};
