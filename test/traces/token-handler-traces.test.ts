// Tests the traces of the token handler in docs/ARCHITECTURE.md: a proxied request, and the refresh of a session's
// tokens. It records the traces in a real process with a real Redis. `FORMGATE_WRITE_TRACES=1 npx vitest run
// test/traces` writes the recorded modules to the page.
import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenHandlerProcess, type TokenHandlerProcess } from '../support/token-handler-process.ts';
import { expectTrace, recordRequest } from './expect-trace.ts';
import { createRecording } from './recording.ts';

let world: TargetWorld;
let handler: TokenHandlerProcess;
const recording = createRecording();
const logFile = join(tmpdir(), `trace-${randomUUID()}.log`);
const isRegistered = () => readFileSync(logFile, 'utf8').includes('registration written');
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  // Leave out PLATFORM_CACHE_TTL, so that the caches have their default lifetime.
  const { PLATFORM_CACHE_TTL: _, ...env } = world.handler.env;
  handler = await startTokenHandlerProcess({ env: { ...env, ...recording.env }, logFile });
  // Wait for the registration at the platform, so that its calls are not recorded.
  for (let waited = 0; !isRegistered() && waited < 60_000; waited += 50) await sleep(50);
});
afterAll(async () => {
  await handler.stop();
  await world.close();
  recording.discard();
  rmSync(logFile, { force: true });
});

/** Modules that run on timers, independently of requests. */
const timed = ['sessions/end-watch.ts', 'targets/streams.ts', 'targets/transfer-rate.ts'];
const isRequested = (path: string) => !timed.some((name) => path.endsWith(name));

const get = () => world.send({ url: handler.url, path: '/echo' });
let proxied: string[];

describe('the trace of', () => {
  it('a proxied GET is the documented one', async () => {
    proxied = (await recordRequest(recording, get)).filter(isRequested);
    expectTrace('Proxied request', proxied);
  });

  it('a token refresh, for which a proxied GET waits, is the documented one', async () => {
    const { handle } = world.person;
    // Remember the access token at the beginning of each recording, to check that each recording refreshed it. A
    // recording may be repeated.
    const tokens: string[] = [];
    const modules = await recordRequest(recording, get, async () => {
      tokens.push((await world.stored(handle)).tokens.accessToken);
      await world.shortenToken(handle, 0);
    });
    expect(tokens.length).toBeGreaterThanOrEqual(5);
    expect(new Set(tokens).size).toBe(tokens.length);
    const isOfRefresh = (path: string) => !proxied.includes(path) || /sessions\/sessions?\.ts$/.test(path);
    expectTrace('Token refresh', modules.filter(isRequested).filter(isOfRefresh));
  });
});
