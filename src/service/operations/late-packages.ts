// Packages that no process needs to be ready, loaded when they are first used: they would take a tenth of the time to
// start. It loads nothing by itself; with `require`, because not all of their users are asynchronous.
import { createRequire } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as Jose from 'jose';
import type * as OpenidClient from 'openid-client';
import type * as ZodOpenapi from 'zod-openapi';

const load = createRequire(import.meta.url);

export const jose = (): typeof Jose => load('jose');
export const openidClient = (): typeof OpenidClient => load('openid-client');
export const zodOpenapi = (): typeof ZodOpenapi => load('zod-openapi');

/** All of them, each in a turn of its own: for a process that serves, so that nobody waits for one later. */
export async function loadLatePackages(): Promise<void> {
  for (const loadOne of [openidClient, jose, zodOpenapi]) {
    await nextTurn();
    loadOne();
  }
}
