// Replaces the system's name resolution, whose faults a test cannot cause: a host without an answer occupies a thread
// for good. Like the system, looks up only a few hosts at the same time, in the order of the calls.
import type { LookupAddress } from 'node:dns';

type Callback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** The address of a host, or what happens instead. `silent`: the lookup does not end before `endAll`. */
export type Answer = string | 'silent' | 'unknown';

export function createSystemLookups(threads: number, answers: Record<string, Answer>) {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  const silent: (() => void)[] = [];
  let running = 0;

  function start(host: string, callback: Callback): void {
    running += 1;
    const end = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => {
      running -= 1;
      callback(error, addresses);
      waiting.shift()?.();
    };
    const answer = answers[host] ?? 'unknown';
    const fail = () => end(Object.assign(new Error(`no ${host}`), { code: 'ENOTFOUND', syscall: 'getaddrinfo' }), []);
    if (answer === 'silent') silent.push(fail);
    else if (answer === 'unknown') setImmediate(fail);
    else setImmediate(() => end(null, [{ address: answer, family: 4 }]));
  }

  return {
    /** The hosts in the order of their lookups. */
    asked,
    /** Number of lookups that occupy a thread. */
    running: () => running,
    /** Ends all lookups of silent hosts. They fail, as they do when the system gives up. */
    endAll() {
      for (const end of silent.splice(0)) end();
    },
    lookup(host: string, _options: unknown, callback: Callback): void {
      asked.push(host);
      if (running < threads) start(host, callback);
      else waiting.push(() => start(host, callback));
    },
  };
}
