// Subscribes users to notification types and unsubscribes them, each in one transaction. A repeated request changes
// nothing: it finds the user's existing subscriber, and does not add criteria that already exist. A client can
// therefore retry after a lost response.
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import type { Queryable } from '../../service/postgres/postgres.ts';
import type { TenantPool } from '../tenant-pool.ts';
import type { NewSubscriber } from './schema.ts';
import { createSubscriberStore, type FindOrCreate } from './subscribers-store.ts';
import { type Criterion, isEmpty, mostCompared, mostCriteria, normalizeAddress } from './subscription.ts';
import { createSubscriptionStore, type SubscriptionStore } from './subscriptions-store.ts';

export interface SubscribingOptions {
  tenantPool: Pick<TenantPool, 'transaction'>;
  clock: Clock;
  findOrCreate(transaction: Queryable): FindOrCreate;
}

export type Subscribing = ReturnType<typeof createSubscribing>;

export function createSubscribing({ tenantPool, clock, findOrCreate }: SubscribingOptions) {
  return {
    /**
     * Subscribes a subscriber to the type: the existing one with the request's `id` or `userId`, or a new one. Returns
     * the subscriber's id.
     */
    subscribe(tenant: string, typeId: string, request: NewSubscriber): Promise<string> {
      return tenantPool.transaction(tenant, async (transaction) => {
        const subscribers = createSubscriberStore(transaction);
        const id = request.id ?? undefined;
        if (id !== undefined && !(await subscribers.keep(tenant, id)))
          throw new Problem('not-found', 'The subscriber does not exist.');
        const subscriberId = id ?? (await findOrCreate(transaction)(tenant, newSubscriber(request), clock()));
        await addCriterion(createSubscriptionStore(transaction), tenant, typeId, subscriberId, request.criteria);
        return subscriberId;
      });
    },

    /**
     * Adds one criterion to a subscription, or replaces all its criteria if an array is given. Throws 404 for an
     * unknown subscriber.
     */
    addOrReplace(
      tenant: string,
      typeId: string,
      subscriberId: string,
      criteria: Criterion | Criterion[] | null | undefined,
    ): Promise<void> {
      return tenantPool.transaction(tenant, async (transaction) => {
        if (!(await createSubscriberStore(transaction).keep(tenant, subscriberId)))
          throw new Problem('not-found', 'The subscriber does not exist.');
        const store = createSubscriptionStore(transaction);
        if (!Array.isArray(criteria)) return addCriterion(store, tenant, typeId, subscriberId, criteria);
        const { created } = await store.lockOrCreate(tenant, typeId, subscriberId);
        if (created) throw refused('The subscription does not exist, so its criteria cannot be replaced.');
        await requireRoom(store, tenant, await store.setCriteria(tenant, typeId, subscriberId, criteria));
      });
    },

    /**
     * Removes the criteria that match the same events as `criterion`. If no criteria remain, removes the subscription.
     */
    removeCriterion(tenant: string, typeId: string, subscriberId: string, criterion: Criterion): Promise<boolean> {
      if (isEmpty(criterion)) throw refused('The criteria must have a correlationId or a context.');
      return tenantPool.transaction(tenant, async (transaction) => {
        const store = createSubscriptionStore(transaction);
        return (
          (await store.lock(tenant, typeId, subscriberId)) && store.removeCriterion(typeId, subscriberId, criterion)
        );
      });
    },

    /** Deletes a subscriber with its addresses. Resolves to false if the subscriber does not exist. */
    removeSubscriber(tenant: string, subscriberId: string): Promise<boolean> {
      return tenantPool.transaction(tenant, (transaction) =>
        createSubscriberStore(transaction).remove(tenant, subscriberId),
      );
    },
  };
}

async function addCriterion(
  store: SubscriptionStore,
  tenant: string,
  typeId: string,
  subscriberId: string,
  criterion: Criterion | null | undefined,
): Promise<void> {
  const { everything } = await store.lockOrCreate(tenant, typeId, subscriberId);
  if (!criterion || isEmpty(criterion)) {
    await store.setCriteria(tenant, typeId, subscriberId, []);
    return;
  }
  if (everything) throw refused('The subscription already matches every event.');
  const outcome = await store.addCriterion(tenant, typeId, subscriberId, criterion);
  if (outcome === 'full')
    throw new Problem('conflict', `The subscription has ${mostCriteria} criteria, and cannot have more.`);
  if (outcome === 'added') await requireRoom(store, tenant, [criterion.correlationId ?? null]);
}

/**
 * Throws 409 if the tenant now has too many or too large criteria with one of these correlation ids. The error rolls
 * back the transaction. Concurrent transactions do not see each other's criteria, and may exceed the limit a little.
 */
async function requireRoom(store: SubscriptionStore, tenant: string, correlationIds: (string | null)[]): Promise<void> {
  if (correlationIds.length === 0 || !(await store.exceedsCompared(tenant, correlationIds))) return;
  const { criteria, bytes } = mostCompared;
  throw new Problem(
    'conflict',
    `The tenant cannot have more than ${criteria} criteria, or ${bytes} bytes of criteria, with the same correlation id or without one.`,
  );
}

function newSubscriber({ userId, addressAs, channels }: NewSubscriber) {
  return {
    userId: userId ?? undefined,
    addressAs: addressAs ?? '',
    channels: channels.map(({ channel, address, verified }) => ({
      channel,
      address: normalizeAddress(channel, address),
      verified,
    })),
  };
}

function refused(detail: string): Problem {
  return invalidRequest([{ pointer: '/criteria', detail }]);
}
