// Reports when keys that were read over a connection have changed in Redis (RESP3 client tracking). This code does not
// cache values; its callers do.
import { BasicPooledClientSideCache } from '@redis/client';

type CacheCall = Parameters<BasicPooledClientSideCache['handleCache']>;

/**
 * Replaces the cache of node-redis, which copies a value at every hit. `onInvalid` gets the changed key, or null if any
 * key may have changed because a connection broke or Redis stopped tracking.
 */
export class Invalidations extends BasicPooledClientSideCache {
  readonly #onInvalid: (key: string | null) => void;

  constructor(onInvalid: (key: string | null) => void) {
    super({ recordStats: false });
    this.#onInvalid = onInvalid;
  }

  override async handleCache(...[client, parser, send, transformReply, typeMapping]: CacheCall): Promise<unknown> {
    // Redis no longer reports changes of the keys that were read over a broken connection, so every key may have
    // changed.
    if (!client.isReady) this.#onInvalid(null);
    const reply = await send();
    return transformReply ? transformReply(reply, parser.preserve, typeMapping) : reply;
  }

  override invalidate(key: string | Buffer | null): void {
    this.#onInvalid(key === null ? null : key.toString());
  }

  override clear(): void {
    this.#onInvalid(null);
  }

  override onError(): void {
    this.#onInvalid(null);
  }

  override onClose(): void {
    this.#onInvalid(null);
  }

  override onPoolClose(): void {
    this.#onInvalid(null);
  }
}
