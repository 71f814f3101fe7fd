// Tells when keys that were read over a connection have changed in Redis (RESP3 client tracking). It keeps no values:
// what was made of them is their reader's to keep, and to drop when told.
import { BasicPooledClientSideCache } from '@redis/client';

type CacheCall = Parameters<BasicPooledClientSideCache['handleCache']>;

/**
 * Takes the place of node-redis' own cache, which copies a value at every hit. Works alike for one server, Sentinel and
 * Cluster. `onInvalid` gets the key that has changed, or null when any may have: a connection broke, or Redis gave up
 * keeping track.
 */
export class Invalidations extends BasicPooledClientSideCache {
  readonly #onInvalid: (key: string | null) => void;

  constructor(onInvalid: (key: string | null) => void) {
    super({ recordStats: false });
    this.#onInvalid = onInvalid;
  }

  override async handleCache(...[client, parser, send, transformReply, typeMapping]: CacheCall): Promise<unknown> {
    // A broken connection takes its tracking with it; what is read over the next one is tracked anew.
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
