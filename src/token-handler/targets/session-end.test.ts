// Tests what happens to a running proxied request if a logout ends its session, or if the client disconnects.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { type Person, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { acceptWebSocket } from '../../../test/support/upstream.ts';

let world: TargetWorld;
let isClosed: boolean;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
});
afterAll(() => world.close());
beforeEach(() => {
  isClosed = false;
  world.upstream.forget();
});

const logOut = ({ cookie }: Person) =>
  fetch(`${world.site}/token-handler/v1/clients/web/logout`, { headers: { Cookie: cookie }, redirect: 'manual' });
function watchClose({ socket }: IncomingMessage): void {
  const close = () => {
    isClosed = true;
  };
  // Also listens for `end`, because Node keeps an upgraded connection half open if the peer ends it.
  socket.resume().once('end', close).once('close', close);
}
/**
 * Waits until the upstream's connection is closed, which must happen within 2 s. Allows 0.5 s more for a slow machine.
 */
async function untilClosed(): Promise<void> {
  const stopwatch = startStopwatch();
  await expect.poll(() => isClosed).toBe(true);
  expect(stopwatch.stop()).toBeLessThan(2_500);
}

describe('the end of a session', () => {
  it.each([
    ['that goes on', 0],
    ['that its client does not read', 30_000_000],
  ])('aborts a response with Content-Length %s within 2 s', async (_what, first) => {
    const person = await world.enter();
    world.upstream.answer = (request, response) => {
      watchClose(request);
      response.writeHead(200, { 'Content-Length': 1_000_000_000 }).write(Buffer.alloc(first + 1));
      const timer = setInterval(() => response.write('x'), 50);
      response.once('close', () => clearInterval(timer));
    };
    const { request, answer } = world.start({ as: person });
    request.end();
    const incoming = await answer;
    incoming.on('error', () => undefined);
    if (first === 0) incoming.resume();
    else incoming.pause();
    await delay(1_100);
    await logOut(person);
    await untilClosed();
    await expect(buffer(incoming)).rejects.toThrow();
    expect(incoming.complete).toBe(false);
  });

  it('causes a 401 for a request that waits for its response', async () => {
    const person = await world.enter();
    world.upstream.answer = watchClose;
    const sent = world.send({ as: person });
    await world.upstream.waitFor(1);
    await logOut(person);
    expect(await sent).toMatchObject({ status: 401, problem: 'unauthenticated' });
    await untilClosed();
  });

  it('ends an upload that is under way with 401', async () => {
    const person = await world.enter();
    world.upstream.answer = watchClose;
    const { request, answer } = world.start({ as: person, method: 'POST', headers: { 'Content-Length': 1_000 } });
    request.write('some');
    await world.upstream.waitFor(1);
    await delay(1_100);
    await logOut(person);
    expect((await answer).statusCode).toBe(401);
    await untilClosed();
    request.destroy();
  });
});

const handshake = () =>
  [
    'GET /token-handler/v1/targets/api/x HTTP/1.1',
    'Host: a',
    `Cookie: ${world.person.cookie}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Key: eA==',
    '\r\n',
  ].join('\r\n');

describe('a client that leaves while its WebSocket handshake is pending', () => {
  it.each(['destroy', 'end', 'resetAndDestroy'] as const)('by %s ends the handshake at the upstream', async (leave) => {
    world.upstream.onUpgrade = (request) => watchClose(request);
    const socket = connect(Number(new URL(world.site).port), '127.0.0.1').on('error', () => undefined);
    socket.write(handshake());
    await world.upstream.waitFor(1);
    socket[leave]();
    await untilClosed();
    socket.destroy();
  });
});

describe('an open WebSocket', () => {
  it('ends soon after its client has left, even if the upstream keeps its side open', async () => {
    world.upstream.onUpgrade = (request, upstream) => acceptWebSocket(request, upstream);
    const socket = connect(Number(new URL(world.site).port), '127.0.0.1').on('error', () => undefined);
    socket.write(handshake());
    await once(socket, 'data');
    let isOver = false;
    socket.once('close', () => {
      isOver = true;
    });
    // Ends the connection without a WebSocket close frame.
    socket.resume().end();
    await expect.poll(() => isOver).toBe(true);
    const metrics = await (await fetch(`${world.handler.metricsUrl}/metrics`)).text();
    expect(metrics).toContain('\nformgate_open_streams{kind="websocket"} 0\n');
  });
});
