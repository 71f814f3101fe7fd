// Thousands of proxied requests that are aborted at random points by the client, the upstream or a logout. The token
// handler is a separate process. ABORTS is the number of requests. TEST_SEED repeats a schedule.
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answerByMode, cutRequest, randomOf, startSilentServer, upgradeByMode } from '../support/abort-schedule.ts';
import { seedOfRun, sizeOf } from '../support/sizes.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../support/targets.ts';
import { startTokenHandlerProcess, type TokenHandlerProcess } from '../support/token-handler-process.ts';

const total = sizeOf('ABORTS');
const seed = seedOfRun(import.meta.filename);
const atOnce = 32;
const connections = 16;
const logFile = join(tmpdir(), `formgate-aborts-${process.pid}.log`);

let world: TargetWorld;
let handler: TokenHandlerProcess;
let silent: Awaited<ReturnType<typeof startSilentServer>>;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  silent = await startSilentServer();
  await world.direct('other', `https://127.0.0.1:${silent.port}/`);
  silent.hold();
  const limits = { TARGET_SESSION_LIMIT: '1000000', TARGET_ADDRESS_LIMIT: '1000000', SIGN_IN_LIMIT: '1000000' };
  const shares = { UPSTREAM_CONNECTIONS: String(connections), UPSTREAM_TENANT_SHARE: '100' };
  handler = await startTokenHandlerProcess({ env: { ...world.handler.env, ...limits, ...shares }, logFile });
});
afterAll(async () => {
  await handler.stop();
  await silent.close();
  await world.close();
});

const openFiles = async () => (await readdir(`/proc/${handler.child.pid}/fd`)).length;
const inState = (state: string) => handler.metric(`formgate_upstream_connections{state="${state}"}`);
const logOut = ({ cookie }: Person) =>
  fetch(`${handler.url}/token-handler/v1/clients/web/logout`, { headers: { Cookie: cookie }, redirect: 'manual' });

async function runSchedule(people: Person[]): Promise<void> {
  const random = randomOf(seed);
  const port = Number(new URL(handler.url).port);
  let started = 0;
  const run = async () => {
    while (started < total) {
      started += 1;
      // Two of the people log out while their requests continue.
      if (started % Math.floor(total / 3) === 0) await logOut(people[started > total / 2 ? 0 : 1] as Person);
      await cutRequest(random, port, people[started % people.length] as Person);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, run));
}

it('proxied requests that are aborted at any point neither crash the token handler nor leak connections', {
  timeout: 600_000,
}, async () => {
  const people = [await world.enter(), await world.enter(), await world.enter('admin@example.com'), world.person];
  const before = await openFiles();
  world.upstream.answer = answerByMode;
  world.upstream.onUpgrade = upgradeByMode;
  await runSchedule(people);
  silent.drop();
  expect(handler.child.exitCode).toBeNull();
  await expect.poll(() => inState('held')).toBe(0);
  await expect.poll(() => inState('waiting')).toBe(0);
  for (const kind of ['websocket', 'event-stream'])
    await expect.poll(() => handler.metric(`formgate_open_streams{kind="${kind}"}`)).toBe(0);
  // Idle connections to the upstream, connections to Redis, and the descriptors of the logger may stay open.
  await expect.poll(openFiles).toBeLessThanOrEqual(before + connections + 8);
  const log = await readFile(logFile, 'utf8');
  expect(log.split('\n').filter((line) => /"level":"fatal"|uncaught|unhandled/i.test(line))).toEqual([]);
  expect((await world.send({ url: handler.url, path: '/mode-answers' })).status).toBe(200);
});
