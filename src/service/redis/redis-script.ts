// Defines scripts that run in Redis. Processes without Redis import this file too. It therefore does not load the Redis
// client, which would be a quarter of all modules of such a process.
import { hash } from 'node:crypto';

export interface RedisScript {
  /** Source in Lua. All keys of a call must be in one slot of a Cluster. */
  lua: string;
  sha1: string;
}

export function defineScript(lua: string): RedisScript {
  return { lua, sha1: hash('sha1', lua) };
}

/** The cause of a failure if Redis certainly did not run the script. After other failures, Redis may have run it. */
export class NotRun extends Error {}
