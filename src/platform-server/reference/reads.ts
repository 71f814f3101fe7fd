// Reads configuration in the same way as the reference implementation. A list reads its entries one after another. It
// sorts only the first page, and fails above 16 MiB, the maximum size of a document in that implementation's database.
// The event service and the notification service cache core configuration, and cache its absence too. They do not
// notice changes until the cache entry expires.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../service/clock.ts';
import { Problem } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import type { ConsumerReads } from '../behaviour.ts';
import type { ConfigurationStore } from '../configuration/store.ts';

const largestResponse = 16 * 1_048_576;

export function slowLists(store: ConfigurationStore): ConfigurationStore {
  return {
    ...store,
    async list(scope, namespace, options) {
      // The reference implementation does not limit the size of a page.
      const found = await store.list(scope, namespace, { ...options, maxBytes: Number.MAX_SAFE_INTEGER });
      const entries = found.items;
      let size = 0;
      for (const { name } of entries) size += JSON.stringify(await store.read({ scope, namespace, name })).length;
      if (size > largestResponse) throw new Problem('internal', 'Internal Server Error');
      if (options.after === undefined) return found;
      // The last entry of the page keeps its position, because the cursor is made from it.
      return { ...found, items: [...entries.slice(0, -1).reverse(), ...entries.slice(-1)] };
    },
  };
}

export function cachedCore(
  store: ConfigurationStore,
  { milliseconds, clock }: { milliseconds: number; clock: Clock },
): ConsumerReads {
  const kept = new Map<string, { core: unknown; until: number }>();
  const latestOfBoth: ConfigurationStore['latestOfBoth'] = async (scope, home) => {
    const { core, tenant } = await store.latestOfBoth(scope, home);
    const key = `${home.namespace}:${home.name}`;
    const now = clock().getTime();
    const known = kept.get(key);
    if (known && known.until > now) return { core: known.core, tenant };
    kept.set(key, { core, until: now + milliseconds });
    return { core, tenant };
  };
  return {
    latestOfBoth,
    // No two versions are the same, so that only this cache decides how old a value may be.
    latestVersion: async () => randomUUID(),
    async memberText(scope, home, [first, ...rest]) {
      const { core, tenant } = await latestOfBoth(scope, home);
      const found = [core, tenant].map((document) => memberAt(document, [first])).find((entry) => entry != null);
      return JSON.stringify(memberAt(found, rest));
    },
  };
}

function memberAt(value: unknown, path: string[]): unknown {
  return path.reduce<unknown>((found, key) => (isObject(found) ? found[key] : undefined), value);
}
