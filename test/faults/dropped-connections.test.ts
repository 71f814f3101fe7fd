// Tests the token handler's connections to the identity provider and to upstreams after a network has dropped them
// without informing either end. For platform services, see src/platform/http-agent.test.ts.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../support/platform.ts';
import { createSiteBrowser } from '../support/site-browser.ts';
import { startStopwatch } from '../support/stopwatch.ts';
import { startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTcpGate, type TcpGate } from '../support/tcp-gate.ts';
import { startTokenDoor, type TokenDoor } from '../support/token-door.ts';

let platform: TestPlatform;
let door: TokenDoor;
let gate: TcpGate;
let world: TargetWorld;

beforeAll(async () => {
  platform = await startTestPlatform();
  door = await startTokenDoor(platform.access.url);
  gate = await startTcpGate(Number(new URL(door.url).port));
  world = await startTargetWorld({ store: 'redis', platform, accessUrl: `http://127.0.0.1:${gate.port}/auth` });
});
afterAll(async () => {
  await world.close();
  await gate.close();
  await door.close();
  await platform.close();
});

describe('connections to the identity provider', () => {
  it('carry one request each: for a registration, a sign-in, a refresh, keys and the service account', async () => {
    const person = await world.enter();
    const { accessToken } = (await world.stored(person.handle)).tokens;
    await world.shortenToken(person.handle, 1_000);
    expect((await world.send({ as: person })).status).toBe(200);
    expect((await world.stored(person.handle)).tokens.accessToken).not.toBe(accessToken);
    // Browsers may reuse connections, so only the paths of the token handler's own requests count.
    const isOurs = (path: string) => /\/(?:token|certs|openid-configuration|clients-registrations)\b/.test(path);
    expect(door.reusing.filter(isOurs)).toEqual([]);
  });

  it('do not delay a sign-in after a network has dropped all that were open', async () => {
    await Promise.all(Array.from({ length: 5 }, () => world.enter()));
    gate.strand();
    const stopwatch = startStopwatch();
    await world.signIn(createSiteBrowser([], { keepsConnections: false }));
    // A call on a dead connection would take 5 s or more.
    expect(stopwatch.stop()).toBeLessThan(4_000);
  });
});

describe('a target whose idle connections a network has dropped', () => {
  it('works again within two seconds, although the requests on dead connections still wait', async () => {
    const upstream = await startTcpGate(world.upstream.port);
    onTestFinished(() => upstream.close());
    await world.direct('root', `http://127.0.0.1:${upstream.port}/`);
    const target = '/token-handler/v1/targets/root/x';
    const { answer } = world.upstream;
    onTestFinished(() => {
      world.upstream.answer = answer;
    });
    // Eight requests that overlap leave eight idle connections.
    world.upstream.answer = (_request, response) => void setTimeout(() => response.end('late'), 500);
    await Promise.all(Array.from({ length: 8 }, () => world.send({ target })));
    world.upstream.answer = answer;
    // The token handler replaces its connections to an upstream at most once in 3 s.
    await delay(3_000);
    upstream.strand();
    const { request, answer: noAnswer } = world.start({ target });
    request.end();
    noAnswer.catch(() => undefined);
    onTestFinished(() => void request.destroy());
    await delay(1_500);
    const stopwatch = startStopwatch();
    expect((await world.send({ target })).status).toBe(200);
    expect(stopwatch.stop()).toBeLessThan(2_000);
  });
});
