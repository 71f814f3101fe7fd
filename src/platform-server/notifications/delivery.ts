// The jobs that deliver notices. One job routes an event to its subscribers; another delivers a notice to one
// subscriber. Jobs contain only ids and the trace of a request. The address and the text are looked up when the mail is
// sent. If a job runs twice, the event is still routed only once, and both mails have the same Message-ID. The notices
// about one form reach a subscriber in the order of the form's events.
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import type { Logger } from '../../service/operations/log.ts';
import type { Metrics } from '../../service/operations/metrics.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import type { StoredEvent } from '../events/event.ts';
import { createEventStore } from '../events/store.ts';
import { MailError, type Mailer } from '../mail.ts';
import { createDeliveryStore, type Delivery } from './deliveries-store.ts';
import { createNoticeMetrics } from './notice-metrics.ts';
import { type NotificationType, type Template, templatesOf, typesOfEvent } from './notification-type.ts';
import { RenderFailure } from './render-failure.ts';
import { createSubscriberStore } from './subscribers-store.ts';
import type { Channel } from './subscription.ts';
import type { Notice, StoredNoticeData } from './template.ts';

export interface DeliveryOptions {
  pool: pg.Pool;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  mailer: Mailer;
  /**
   * Renders a notice. Throws RenderFailure if the template is invalid, or exceeds the limit of time or memory. `tenant`
   * is the owner of the event.
   */
  render(tenant: string, template: Template, data: StoredNoticeData): Promise<Notice>;
  typesOf(tenant: string): Promise<Map<string, NotificationType>>;
  /** Returns the sender of the tenant's mail. Undefined means the operator's sender. */
  senderOf(tenant: string): Promise<string | undefined>;
  tenantShown(tenant: string): Promise<{ id: string; name: string }>;
  managementUrl(): Promise<string>;
  subscriberUrn(id: string): string;
  /** Maximum number of subscribers to which one transaction routes an event. */
  routingPage?: number;
}

export interface DeliveryJobs {
  /** Returns false if the tenant has too many notices, so that the event must be routed further later. */
  routeEvent(sequence: string): Promise<boolean>;
  deliver(delivery: Delivery): Promise<void>;
}

const defaultRoutingPage = 5_000;

/** The channels for which this server has a provider. */
const providers = new Set(['email']);

export function createDeliveryJobs(options: DeliveryOptions): DeliveryJobs {
  const { pool } = options;
  const { notices } = createNoticeMetrics(options.metrics);

  return {
    async routeEvent(sequence) {
      const found = await createEventStore(pool).findHead(sequence);
      if (!found) return true;
      // Reads the types before the transaction: a job that holds a connection must not wait for a second one.
      const types = typesOfEvent(await options.typesOf(found.tenant), found.namespace, found.name);
      const typeIds = types.map(({ id }) => id).toSorted();
      const deliveries = createDeliveryStore(pool);
      while (await deliveries.hasRoom(found)) if (await routePage(options, sequence, typeIds)) return true;
      return false;
    },

    async deliver(delivery) {
      const store = createDeliveryStore(pool);
      const state = await store.stateOf(delivery);
      if (state === 'gone') return;
      if (state === 'early') return store.postpone(delivery);
      const target = await targetOf(options, delivery);
      const outcome = target ? await sendOrDrop(options, delivery, target) : 'dropped';
      if (outcome === 'postponed') return store.postpone(delivery);
      await withTransaction(pool, (transaction) => createDeliveryStore(transaction).finish(delivery));
      notices.inc({ outcome });
    },
  };
}

/**
 * Routes an event to its next page of subscribers, in one transaction. An event with very many subscribers would
 * otherwise exceed the statement timeout. Returns true if nothing is left to route. The event's row contains the
 * position, so that a retry continues after the last page, whose notices may already be delivered. A person who
 * subscribes during the routing gets the notice if the routing has not yet passed the new subscriber's position.
 */
async function routePage(options: DeliveryOptions, sequence: string, typeIds: readonly string[]): Promise<boolean> {
  const { pool, clock, routingPage: size = defaultRoutingPage } = options;
  return withTransaction(pool, async (transaction) => {
    const events = createEventStore(transaction);
    const event = await events.lockUnrouted(sequence);
    if (!event) return true;
    const deliveries = createDeliveryStore(transaction);
    const { typeId: first, subscriberId } = event.routedTo ?? { typeId: '', subscriberId: '' };
    for (const typeId of typeIds.filter((id) => id >= first)) {
      const after = typeId === first ? subscriberId : '';
      const last = await deliveries.route(event, { typeId, after, size }, clock());
      if (last === undefined) continue;
      await events.saveRoutedTo(sequence, { typeId, subscriberId: last });
      return false;
    }
    // An event without deliveries is deleted, because nothing needs it.
    if (await deliveries.hasAny(sequence)) await events.markRouted(sequence, clock());
    else await events.remove(sequence);
    return true;
  });
}

interface Target {
  event: StoredEvent;
  template: Template;
  address: string;
  subscriber: { id: string; addressAs: string };
}

/**
 * Returns the recipient and the template. Returns undefined if the event, the type, the template or the subscriber is
 * missing, or if the subscriber has no usable channel.
 */
async function targetOf(options: DeliveryOptions, delivery: Delivery): Promise<Target | undefined> {
  const event = await createEventStore(options.pool).find(delivery.event);
  if (!event) return undefined;
  const type = (await options.typesOf(event.tenant)).get(delivery.typeId);
  const templates = type && templatesOf(type, event.namespace, event.name);
  const subscriber = await createSubscriberStore(options.pool).find(event.tenant, delivery.subscriberId);
  if (!type || !templates || !subscriber) return undefined;
  const usable = ({ channel }: Channel) =>
    type.channels.includes(channel) && Object.hasOwn(templates, channel) && providers.has(channel);
  const chosen = subscriber.channels.find(usable);
  const template = chosen && templates[chosen.channel];
  if (!chosen || !template) return undefined;
  return { event, template, address: chosen.address, subscriber };
}

/**
 * Sends a notice. Drops a notice whose template fails, because a retry would fail too. Postpones a notice while too
 * many templates are being rendered, or too many mails sent. Any other error is rethrown, so that the job is retried.
 */
async function sendOrDrop(options: DeliveryOptions, delivery: Delivery, target: Target): Promise<string> {
  try {
    await send(options, delivery, target);
    return 'delivered';
  } catch (error) {
    if (error instanceof Problem && error.slug === 'busy') return 'postponed';
    if (!(error instanceof RenderFailure)) throw error;
    const { event } = target;
    const facts = { tenant: event.tenant, event: `${event.namespace}:${event.name}`, type: delivery.typeId };
    options.log.warn(
      { ...facts, eventId: event.id, reason: error.reason, detail: error.message },
      'notice not rendered',
    );
    return 'unrendered';
  }
}

async function send(options: DeliveryOptions, delivery: Delivery, target: Target): Promise<void> {
  const { event, template, address, subscriber } = target;
  const [tenant, from, managementUrl] = await Promise.all([
    options.tenantShown(event.tenant),
    options.senderOf(event.tenant),
    options.managementUrl(),
  ]);
  const notice = await options.render(event.tenant, template, {
    tenant,
    managementUrl,
    subscriber: { id: subscriber.id, urn: options.subscriberUrn(subscriber.id), addressAs: subscriber.addressAs },
    event: {
      namespace: event.namespace,
      name: event.name,
      timestamp: event.occurred.toISOString(),
      correlationId: event.correlationId ?? undefined,
      context: event.context,
      payload: event.payload,
    },
  });
  const to = { name: subscriber.addressAs, address };
  const messageId = `${messageKey(event.id, delivery)}@${options.mailer.domain}`;
  try {
    await options.mailer.send(event.tenant, { to, from, ...notice, messageId }, 'notice');
  } catch (error) {
    if (error instanceof Problem) throw error;
    // The pauses between further attempts become long. An attempt after an unknown outcome may be a second mail.
    const isSlow = error instanceof MailError && (error.refused || error.mayHaveSent);
    await createDeliveryStore(options.pool).markFailed(delivery, isSlow);
    throw error;
  }
}

/** Returns a key that is the same for all attempts to send one notice, and different for other notices. */
function messageKey(eventId: string, { typeId, subscriberId }: Omit<Delivery, 'event'>): string {
  return createHash('sha256')
    .update(JSON.stringify([eventId, typeId, subscriberId]))
    .digest('hex')
    .slice(0, 40);
}
