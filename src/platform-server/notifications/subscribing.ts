// Subscribes and unsubscribes: each change is one transaction. Subscribing the same user again finds the same
// subscriber, and the same criteria are not added twice, so that a repeat after a lost answer changes nothing.
import type pg from 'pg';
import type { Clock } from '../../service/clock.ts';
import { invalidRequest, Problem } from '../../service/http/problem.ts';
import { withTransaction } from '../../service/postgres/postgres.ts';
import type { NewSubscriber } from './schema.ts';
import { createSubscriberStore } from './subscribers-store.ts';
import { type Criterion, isEmpty, isSameMatch, normalizeAddress } from './subscription.ts';
import { createSubscriptionStore, type SubscriptionStore } from './subscriptions-store.ts';

export type Subscribing = ReturnType<typeof createSubscribing>;

export function createSubscribing({ pool, clock }: { pool: pg.Pool; clock: Clock }) {
  return {
    /** Subscribes a new subscriber, or the one of an `id` or `userId`: the subscriber's id. */
    subscribe(tenant: string, typeId: string, request: NewSubscriber): Promise<string> {
      return withTransaction(pool, async (transaction) => {
        const subscribers = createSubscriberStore(transaction);
        const id = request.id ?? undefined;
        if (id !== undefined && !(await subscribers.find(tenant, id)))
          throw new Problem('not-found', 'There is no such subscriber.');
        const subscriberId = id ?? (await subscribers.findOrCreate(tenant, newSubscriber(request), clock()));
        await addCriterion(createSubscriptionStore(transaction), tenant, typeId, subscriberId, request.criteria);
        return subscriberId;
      });
    },

    /** Adds a criterion, or replaces all of them by an array, for a subscriber that exists. */
    addOrReplace(
      tenant: string,
      typeId: string,
      subscriberId: string,
      criteria: Criterion | Criterion[] | null | undefined,
    ): Promise<void> {
      return withTransaction(pool, async (transaction) => {
        if (!(await createSubscriberStore(transaction).find(tenant, subscriberId)))
          throw new Problem('not-found', 'There is no such subscriber.');
        const store = createSubscriptionStore(transaction);
        if (!Array.isArray(criteria)) return addCriterion(store, tenant, typeId, subscriberId, criteria);
        const { created } = await store.lockOrCreate(tenant, typeId, subscriberId);
        if (created) throw refused('There is no subscription yet whose criteria could be replaced.');
        await store.setCriteria(tenant, typeId, subscriberId, criteria);
      });
    },

    /** Removes the criteria that match the same; the last one takes the subscription with it. */
    removeCriterion(tenant: string, typeId: string, subscriberId: string, criterion: Criterion): Promise<boolean> {
      if (isEmpty(criterion)) throw refused('The criteria must not be empty.');
      return withTransaction(pool, async (transaction) => {
        const store = createSubscriptionStore(transaction);
        const found = await store.find(tenant, typeId, subscriberId);
        if (!found) return false;
        await store.lockOrCreate(tenant, typeId, subscriberId);
        const { criteria = [] } = (await store.find(tenant, typeId, subscriberId)) ?? {};
        const rest = criteria.filter((present) => !isSameMatch(present, criterion));
        if (rest.length === criteria.length) return false;
        if (rest.length === 0) return store.remove(tenant, typeId, subscriberId);
        await store.setCriteria(tenant, typeId, subscriberId, rest);
        return true;
      });
    },

    /** Removes a subscriber and all that holds its address; false when there is none. */
    removeSubscriber(tenant: string, subscriberId: string): Promise<boolean> {
      return withTransaction(pool, (transaction) => createSubscriberStore(transaction).remove(tenant, subscriberId));
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
  if (!criterion || isEmpty(criterion)) return store.setCriteria(tenant, typeId, subscriberId, []);
  if (everything) throw refused('The subscription matches every event: there is nothing to add to it.');
  const { criteria = [] } = (await store.find(tenant, typeId, subscriberId)) ?? {};
  if (criteria.some((present) => isSameMatch(present, criterion))) return;
  await store.setCriteria(tenant, typeId, subscriberId, [...criteria, criterion]);
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
