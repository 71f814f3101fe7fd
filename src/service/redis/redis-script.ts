// Defines scripts that run in Redis. This file does not load the Redis client, because processes without Redis also
// import it. The client would be a quarter of all modules that such a process loads.
import { hash } from 'node:crypto';

export interface RedisScript {
  /** Source in Lua. All keys of a call must be in one slot of a Cluster. */
  lua: string;
  sha1: string;
}

export function defineScript(lua: string): RedisScript {
  return { lua, sha1: hash('sha1', lua) };
}
