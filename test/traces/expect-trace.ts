// Records the modules that a request runs through, and compares them with the traces in docs/ARCHITECTURE.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Recording } from './recording.ts';
import { documentedModules, groupsOf, withTrace } from './trace-page.ts';

const root = join(import.meta.dirname, '../..');
const pagePath = join(root, 'docs/ARCHITECTURE.md');

/**
 * Limits of a trace. `own` and `http` are numbers of modules in these groups (trace-page.ts). `lines` is the number of
 * lines of each module in `http`.
 */
const most = { own: 6, http: 8, lines: 250 };
/** Modules that run on timers and connections, independently of requests. */
const watchers = [
  'src/service/operations/event-loop-watch.ts',
  'src/service/operations/process-readiness.ts',
  'src/service/operations/dependency-state.ts',
  'src/service/postgres/pool-watch.ts',
  'src/service/postgres/silent-connections.ts',
  'src/service/postgres/pool-check.ts',
  'src/service/auth/identity-provider-watch.ts',
  'src/service/time-limit.ts',
  'src/service/redis/redis-connection.ts',
  'src/service/redis/redis-server-client.ts',
  'src/service/background-loop.ts',
  // Background loops run this module at unpredictable times.
  'src/service/retry.ts',
  'src/forms/storage/measurements.ts',
  'src/forms/storage/store.ts',
  'src/forms/storage/usage.ts',
];
/**
 * The module that checks registrations at the platform in the background. This module runs many modules that requests
 * also use.
 */
export const registration = 'src/platform/registration.ts';

/**
 * Returns the modules that run in at least two of three recordings of the same request. Two earlier recordings are
 * discarded, because their requests fill caches. A pause after each request lets the process write the request's log
 * line before the recording ends. If a registration was checked during a recording, the recording is repeated.
 */
export async function recordRequest(
  recording: Recording,
  work: () => Promise<{ status: number; text: string }>,
  prepare: () => Promise<void> = async () => undefined,
): Promise<string[]> {
  const recordings: string[][] = [];
  for (let index = 0; recordings.length < 5 && index < 15; index += 1) {
    await prepare();
    await recording.start();
    const { status, text } = await work();
    expect(status, text).toBe(200);
    await sleep(100);
    const modules = await recording.take();
    if (!modules.includes(registration)) recordings.push(modules);
  }
  return steadyModules(recordings.slice(2));
}

/** Returns the modules that run in at least two of three recordings, sorted, except those that run on timers. */
export function steadyModules(recordings: string[][]): string[] {
  const counts = new Map<string, number>();
  for (const path of recordings.flat()) counts.set(path, (counts.get(path) ?? 0) + 1);
  const steady = [...counts].filter(([, count]) => count > 1).map(([path]) => path);
  return steady.filter((path) => !watchers.includes(path)).sort();
}

/**
 * Compares the modules with the trace `name` in docs/ARCHITECTURE.md. If FORMGATE_WRITE_TRACES is set, first writes the
 * modules to that page.
 */
export function expectTrace(name: string, modules: string[]): void {
  const page = readFileSync(pagePath, 'utf8');
  if (process.env.FORMGATE_WRITE_TRACES) writeFileSync(pagePath, withTrace(page, { name, modules }));
  const documented = documentedModules(readFileSync(pagePath, 'utf8'), name);
  const [{ shared, http, ...recorded }, { shared: known, http: knownHttp, ...listed }] = [
    groupsOf(modules),
    groupsOf(documented.toSorted()),
  ];
  expect(listed, 'FORMGATE_WRITE_TRACES=1 writes the lists').toEqual(recorded);
  // The page may list more modules that others share, because some run only occasionally, for example to fill a cache.
  const listedShared = [...known, ...knownHttp];
  expect([...shared, ...http].filter((path) => !listedShared.includes(path))).toEqual([]);
  expect(http.length).toBeLessThanOrEqual(most.http);
  for (const path of http)
    expect(readFileSync(join(root, path), 'utf8').split('\n').length, path).toBeLessThanOrEqual(most.lines);
}

export const expectShort = (modules: string[]) => expect(groupsOf(modules).own.length).toBeLessThanOrEqual(most.own);
