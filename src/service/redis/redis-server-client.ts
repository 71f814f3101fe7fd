// A node-redis client for a single server, with only the commands that Formgate uses. The `createClient` of node-redis
// creates a class with all 800 commands for each protocol. That took 10 % of the token handler's startup time.
import {
  ErrorReply,
  RedisClient,
  type RedisFunctions,
  type RedisModules,
  type RedisScripts,
  type RespVersions,
  type TypeMapping,
} from '@redis/client';

interface ScriptOptions {
  keys: string[];
  arguments: string[];
}

/** The methods that Formgate uses and that the three kinds of node-redis clients share. */
export interface RawClient {
  get(key: string): Promise<string | null>;
  hGetAll(key: string): Promise<Record<string, string>>;
  set(key: string, value: string, options: { expiration: { type: 'EX' | 'PX'; value: number } }): Promise<unknown>;
  del(keys: string | string[]): Promise<number>;
  eval(script: string, options: ScriptOptions): Promise<unknown>;
  evalSha(sha1: string, options: ScriptOptions): Promise<unknown>;
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
}

export interface ClientKind {
  client: RawClient;
  /**
   * Pings Redis: every primary of a Cluster, or else the only primary. Throws if a primary does not respond, or does
   * not serve its slots.
   */
  ping(): Promise<unknown>;
  /** Sends a command to any node. */
  send(args: string[]): Promise<unknown>;
}

export class ServerClient
  extends RedisClient<RedisModules, RedisFunctions, RedisScripts, RespVersions, TypeMapping>
  implements RawClient
{
  /** False if the server does not permit INFO, usually because of an ACL. */
  #mayAskRole = true;

  /**
   * Throws if the server does not respond, or is a replica. A primary can become a replica while the connection stays
   * open, for example in a failover of a managed Redis, whose address then leads to the new primary. Like a primary, a
   * replica responds to PING, but it refuses writes. The server is therefore asked to close the connection, so that
   * node-redis opens a new one.
   */
  async checkPrimary(): Promise<void> {
    // PING is needed too: unlike INFO, it fails while the server loads its data.
    const [isReplica] = await Promise.all([this.#isReplica(), this.sendCommand(['PING'])]);
    if (!isReplica) return;
    this.sendCommand(['QUIT']).catch(() => undefined);
    throw new Error('the Redis server is a replica, which refuses writes');
  }

  /** Also returns false if the server does not tell its role. */
  async #isReplica(): Promise<boolean> {
    try {
      return this.#mayAskRole && /^role:slave\b/m.test(String(await this.sendCommand(['INFO', 'replication'])));
    } catch (error) {
      if (!(error instanceof ErrorReply)) throw error;
      // With each denied command, the log of the ACL would grow.
      if (/^(NOPERM|ERR unknown command)/.test(error.message)) this.#mayAskRole = false;
      return false;
    }
  }

  get(key: string): Promise<string | null> {
    return this.#read(['GET', key]);
  }

  /** Returns the fields of a hash. RESP2 sends them as a list in which names and values alternate. */
  async hGetAll(key: string): Promise<Record<string, string>> {
    const reply = await this.#read<string[] | Record<string, string>>(['HGETALL', key]);
    if (!Array.isArray(reply)) return reply;
    const fields: Record<string, string> = {};
    for (let index = 0; index < reply.length; index += 2) fields[reply[index] as string] = reply[index + 1] as string;
    return fields;
  }

  set(key: string, value: string, { expiration }: Parameters<RawClient['set']>[2]): Promise<unknown> {
    return this.sendCommand(['SET', key, value, expiration.type, String(expiration.value)]);
  }

  del(keys: string | string[]): Promise<number> {
    return this.sendCommand(['DEL', ...[keys].flat()]);
  }

  eval(script: string, { keys, arguments: args }: ScriptOptions): Promise<unknown> {
    return this.sendCommand(['EVAL', script, String(keys.length), ...keys, ...args]);
  }

  evalSha(sha1: string, { keys, arguments: args }: ScriptOptions): Promise<unknown> {
    return this.sendCommand(['EVALSHA', sha1, String(keys.length), ...keys, ...args]);
  }

  /**
   * Sends a read. While disconnected, clears the cache first: Redis no longer reports changes of the keys that were
   * read over the broken connection, so the cached values may be outdated.
   */
  #read<T>(args: string[]): Promise<T> {
    if (!this.isReady) this.clientSideCache?.clear();
    return this.sendCommand<T>(args);
  }
}
