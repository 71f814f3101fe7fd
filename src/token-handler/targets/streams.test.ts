// Tests WebSockets and event streams through a target: their guards, how they end, and how many may be open.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sendRaw } from '../../../test/support/raw-http.ts';
import { startStopwatch } from '../../../test/support/stopwatch.ts';
import { basePath, type Person, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { until as untilTrue } from '../../../test/support/until.ts';
import { acceptWebSocket, answerWhenRead } from '../../../test/support/upstream.ts';
import type { RunningService } from '../../service/operations/serve.ts';

let world: TargetWorld;
/** A replica that allows at most two open streams for each session. */
let narrow: RunningService;

beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis', env: { DRAIN_DEADLINE: 'PT3S' } });
  narrow = await world.replica({ SESSION_STREAMS: '2' });
});
afterAll(async () => {
  await narrow.close();
  await world.close();
});
beforeEach(() => {
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
  world.upstream.onUpgrade = undefined;
});

const until = (holds: () => boolean) => untilTrue(`${holds}`, holds, { interval: 10 });

interface Opened {
  socket: WebSocket;
  /** The text messages that have arrived at the client. */
  messages: string[];
  isClosed: boolean;
}

interface Opening {
  path?: string;
  as?: Person;
  headers?: Record<string, string>;
  url?: string;
  target?: string;
}

/** Opens a WebSocket. Rejects if the handshake is refused. */
function openSocket({
  path = '/socket',
  as = world.person,
  headers,
  url = world.site,
  target,
}: Opening = {}): Promise<Opened> {
  const address = `${url.replace('http', 'ws')}${target ?? `/token-handler/v1/targets/api${path}`}`;
  const socket = new WebSocket(address, {
    headers: { Cookie: as.cookie, Origin: world.site, ...headers },
    protocols: ['chat'],
  });
  const opened: Opened = { socket, messages: [], isClosed: false };
  socket.addEventListener('message', ({ data }) => opened.messages.push(String(data)));
  socket.addEventListener('close', () => {
    opened.isClosed = true;
  });
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => resolve(opened));
    socket.addEventListener('error', () => reject(new Error('refused')));
  });
}

/** Sends a WebSocket handshake and returns the raw response. */
function handshake(lines: string[], path = '/socket', url = world.site) {
  const head = [
    `GET /token-handler/v1/targets/api${path} HTTP/1.1`,
    'Host: a',
    'Connection: Upgrade',
    'Upgrade: websocket',
  ];
  head.push('Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...lines);
  return sendRaw(Number(new URL(url).port), `${head.join('\r\n')}\r\n\r\n`);
}

/** Makes the upstream respond with an event stream that sends one event and stays open. */
const quietEvents = (_request: IncomingMessage, response: ServerResponse) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.write('data: hello\n\n');
};

async function openEvents(options: Parameters<TargetWorld['start']>[0] = {}) {
  const { request, answer } = world.start({ headers: { Accept: 'text/event-stream' }, ...options });
  request.end();
  const incoming = await answer;
  const events = { incoming, text: '', isOver: false };
  incoming.on('data', (chunk: Buffer) => {
    events.text += chunk;
  });
  incoming.on('error', () => undefined);
  incoming.once('close', () => {
    events.isOver = true;
  });
  return events;
}

const logOut = ({ cookie }: Person) =>
  fetch(`${world.site}/token-handler/v1/clients/web/logout`, { headers: { Cookie: cookie }, redirect: 'manual' });

describe('a WebSocket', () => {
  it('is connected to a WebSocket of the upstream, with the path and the access token', async () => {
    const { socket, messages } = await openSocket({ path: '/socket/a?b=%2f' });
    socket.send('hello');
    await until(() => messages.length === 1);
    expect(messages).toEqual(['hello']);
    const { target, headers } = world.upstream.last();
    expect(target).toBe(`${basePath}/socket/a?b=%2f`);
    expect(headers).toMatchObject({
      authorization: expect.stringMatching(/^Bearer eyJ/),
      upgrade: 'websocket',
      'sec-websocket-protocol': 'chat',
      'x-forwarded-for': '127.0.0.1',
      traceparent: expect.any(String),
    });
    for (const name of ['cookie', 'x-xsrf-token']) expect(headers).not.toHaveProperty(name);
    socket.close();
    await until(() => world.handler.log.lines().some((line) => line.status === 101));
  });

  it('is also served under the path without a version', async () => {
    const { socket } = await openSocket({ target: '/token-handler/targets/api/socket' });
    socket.close();
  });

  it('carries data that the client and the upstream sent immediately after the handshake', async () => {
    world.upstream.onUpgrade = (request, socket) => {
      acceptWebSocket(request, socket, ['Set-Cookie: a=b', 'X-Extra: 1', 'Keep-Alive: x']);
      socket.write('early');
      socket.on('data', (chunk: Buffer) => socket.end(`got ${chunk}`));
    };
    const head = [
      `GET /token-handler/v1/targets/api/x HTTP/1.1`,
      'Host: a',
      'Connection: Upgrade',
      'Upgrade: WebSocket',
    ];
    head.push('Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', `Cookie: ${world.person.cookie}`);
    const { status, headers, body } = await sendRaw(
      Number(new URL(world.site).port),
      `${head.join('\r\n')}\r\n\r\nmine`,
    );
    expect([status, body]).toEqual([101, 'earlygot mine']);
    expect(Object.fromEntries(headers)).toMatchObject({ connection: 'Upgrade', upgrade: 'websocket', 'x-extra': '1' });
    for (const name of ['set-cookie', 'keep-alive']) expect(headers.has(name)).toBe(false);
    expect(headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
  });

  it('with a foreign Origin, or from another site, is refused with 403', async () => {
    const cookie = `Cookie: ${world.person.cookie}`;
    for (const line of [
      'Origin: https://evil.example',
      'Origin: null',
      'Sec-Fetch-Site: cross-site',
      `Origin: ${world.site}.evil.example`,
    ])
      expect((await handshake([cookie, line])).status).toBe(403);
    expect(world.upstream.seen).toEqual([]);
  });

  it('is refused like any other request: 401 without a session or for another tenant, 400 for an invalid path, 403, 404, 429', async () => {
    const cookie = `Cookie: ${world.person.cookie}`;
    const problem = async (...args: Parameters<typeof handshake>) => {
      const { status, body, headers } = await handshake(...args);
      expect(headers.get('content-type')).toMatch('application/problem+json');
      return [status, JSON.parse(body).type.split(':').at(-1)];
    };
    expect(await problem([])).toEqual([401, 'unauthenticated']);
    expect(await problem([cookie, 'X-PLATFORM-TENANT: Other Town'])).toEqual([401, 'unauthenticated']);
    expect(await problem([cookie], '/../x')).toEqual([400, 'invalid-path']);
    expect(await problem([cookie], '/%2e%2e/x')).toEqual([400, 'invalid-path']);
    expect(await problem([cookie], 'x/y')).toEqual([404, 'not-found']);
    const limited = await world.replica({ TARGET_SESSION_LIMIT: '1', UPSTREAM_ALLOWED_DOMAINS: 'example.ca' });
    expect(await problem([cookie], '/x', limited.url)).toEqual([403, 'upstream-not-allowed']);
    expect(await problem([cookie], '/x', limited.url)).toEqual([429, 'too-many-requests']);
    await limited.close();
    expect(world.upstream.seen).toEqual([]);
  });

  it('that the upstream refuses gets the upstream’s own response', async () => {
    world.upstream.onUpgrade = (_request, socket) =>
      void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Why: because\r\n\r\nnot me');
    const { status, body, headers } = await handshake([`Cookie: ${world.person.cookie}`]);
    expect([status, body, headers.get('x-why')]).toEqual([403, 'not me', 'because']);
  });

  it('gets 502 if the upstream cannot be reached', async () => {
    const { text } = await sendRaw(
      Number(new URL(world.site).port),
      `GET /token-handler/v1/targets/dead/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: ${world.person.cookie}\r\n\r\n`,
    );
    expect(text.slice(9, 12)).toBe('502');
  });

  it('is the only supported upgrade: requests for h2c and others are forwarded without the upgrade', async () => {
    for (const protocol of ['h2c', 'websocket, h2c', 'TLS/1.0', 'foo']) {
      world.upstream.forget();
      const { status } = await sendRaw(
        Number(new URL(world.site).port),
        `GET /token-handler/v1/targets/api/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nCookie: ${world.person.cookie}\r\n\r\n`,
      );
      expect([protocol, status]).toEqual([protocol, 200]);
      expect(world.upstream.last().headers).not.toHaveProperty('upgrade');
      expect(world.upstream.last().headers).not.toHaveProperty('http2-settings');
    }
  });

  it('is closed on both sides when either side closes it', async () => {
    let upstreamSocket: Duplex | undefined;
    world.upstream.onUpgrade = (request, socket) => {
      upstreamSocket = socket;
      acceptWebSocket(request, socket);
    };
    const first = await openSocket();
    upstreamSocket?.destroy();
    await until(() => first.isClosed);
    const second = await openSocket();
    const kept = upstreamSocket;
    second.socket.close();
    kept?.on('data', () => kept.destroy());
    await until(() => kept?.destroyed === true);
    await until(() => second.isClosed);
    await expect.poll(() => openStreams(world)).toBe(0);
  });
});

describe('an event stream', () => {
  it('is delivered event by event, without waiting for its end', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      let count = 0;
      const timer = setInterval(() => {
        count += 1;
        response.write(`data: ${count}\n\n`);
        if (count < 3) return;
        clearInterval(timer);
        response.end();
      }, 30);
    };
    const events = await openEvents();
    expect(events.text).toBe('');
    await until(() => events.text.includes('data: 1'));
    expect(events.isOver).toBe(false);
    await until(() => events.isOver);
    expect(events.text).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n');
  });

  it('ends at the upstream when its client leaves', async () => {
    let isClosed = false;
    world.upstream.answer = (request, response) => {
      quietEvents(request, response);
      response.once('close', () => {
        isClosed = true;
      });
    };
    const { incoming } = await openEvents();
    incoming.destroy();
    await until(() => isClosed);
    await expect.poll(() => openStreams(world)).toBe(0);
  });

  it('is recorded in the histogram of request durations with the time until it began', async () => {
    world.upstream.answer = quietEvents;
    await expect.poll(() => openStreams(world)).toBe(0);
    const [before, lines] = [await recordedDurations(world), world.handler.log.lines().length];
    const start = performance.now();
    const { incoming } = await openEvents();
    const untilBegun = performance.now() - start;
    await delay(1_200);
    incoming.destroy();
    const line = () =>
      world.handler.log
        .lines()
        .slice(lines)
        .find(({ status }) => status === 499);
    await until(() => line() !== undefined);
    expect(Number(line()?.ms)).toBeLessThanOrEqual(Math.ceil(untilBegun));
    const { count, sum } = await recordedDurations(world);
    expect(count).toBe(before.count + 1);
    expect((sum - before.sum) * 1_000).toBeLessThanOrEqual(Math.ceil(untilBegun));
  });
});

describe('the session of a stream', () => {
  it('ends its streams within 2 s of a logout, here and on other replicas', async () => {
    const person = await world.enter();
    world.upstream.answer = (request, response) =>
      request.url?.endsWith('chunks') ? void response.write('some') : quietEvents(request, response);
    const socket = await openSocket({ as: person });
    const elsewhere = await openSocket({ as: person, url: narrow.url });
    const events = await openEvents({ as: person });
    const unannounced = await openEvents({ as: person, url: narrow.url, headers: {} });
    const chunks = await openEvents({ as: person, path: '/chunks', headers: {} });
    const other = await openSocket();
    await until(() => events.text !== '' && unannounced.text !== '' && chunks.text !== '');
    await delay(1_100);
    const stopwatch = startStopwatch();
    expect((await logOut(person)).status).toBe(302);
    await until(() => socket.isClosed && elsewhere.isClosed && events.isOver && unannounced.isOver && chunks.isOver);
    expect(stopwatch.stop()).toBeLessThan(2_000);
    // Event streams end normally. Other responses are aborted, because they must not appear complete.
    expect([events.incoming.complete, unannounced.incoming.complete, chunks.incoming.complete]).toEqual([
      true,
      true,
      false,
    ]);
    expect(other.isClosed).toBe(false);
    other.socket.close();
  });

  it('that is revoked before the upstream has responded causes a 401', async () => {
    const person = await world.enter();
    let isClosed = false;
    world.upstream.answer = (_request, response) => {
      response.once('close', () => {
        isClosed = true;
      });
    };
    const { request, answer } = world.start({ as: person, headers: { Accept: 'text/event-stream' } });
    request.end();
    await world.upstream.waitFor(1);
    await logOut(person);
    const incoming = await answer;
    expect([incoming.statusCode, (await buffer(incoming)).toString()]).toEqual([
      401,
      expect.stringContaining('unauthenticated'),
    ]);
    await until(() => isClosed);
  });

  it('may have a limited number of open streams; one more gets 429 until one of them ends', async () => {
    world.upstream.answer = quietEvents;
    const person = await world.enter();
    const at = { as: person, url: narrow.url };
    const first = await openEvents(at);
    const second = await openSocket(at);
    const refused = await world.send({ ...at, headers: { Accept: 'text/event-stream' } });
    expect([refused.status, refused.problem]).toEqual([429, 'too-many-requests']);
    expect((await handshake([`Cookie: ${person.cookie}`], '/x', narrow.url)).status).toBe(429);
    // A request is also refused if only the response shows that the request opens an event stream.
    expect((await world.send({ ...at })).status).toBe(429);
    const another = await openEvents({ url: narrow.url });
    expect(another.incoming.statusCode).toBe(200);
    first.incoming.destroy();
    let third = await openEvents(at);
    for (; third.incoming.statusCode === 429; third = await openEvents(at)) third.incoming.resume();
    expect(third.incoming.statusCode).toBe(200);
    for (const { incoming } of [third, another]) incoming.destroy();
    second.socket.close();
  });

  it('is not kept alive by an open stream', async () => {
    const short = await world.replica({ SESSION_IDLE: 'PT4S' });
    onTestFinished(() => short.close());
    world.upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const timer = setInterval(() => response.write('data: tick\n\n'), 100);
      response.once('close', () => clearInterval(timer));
    };
    const person = await world.enter();
    const events = await openEvents({ as: person, url: short.url });
    const started = performance.now();
    await until(() => events.isOver);
    expect(performance.now() - started).toBeGreaterThan(1_000);
    expect((await world.send({ as: person, url: short.url })).status).toBe(401);
  });
});

describe('a process that stops', () => {
  it('keeps streams open until the drain deadline, and then ends them', async () => {
    world.upstream.answer = quietEvents;
    const replica = await world.replica({ DRAIN_DEADLINE: 'PT3S' });
    const events = await openEvents({ url: replica.url });
    const socket = await openSocket({ url: replica.url });
    await until(() => events.text !== '');
    const began = performance.now();
    const stopping = replica.close();
    await until(() => events.isOver || socket.isClosed);
    expect(performance.now() - began).toBeGreaterThan(2_900);
    await stopping;
    await until(() => events.isOver && socket.isClosed);
  });
});

/** Returns the number of proxied requests in the histogram of durations, and the sum of their seconds. */
async function recordedDurations({ handler }: TargetWorld): Promise<{ count: number; sum: number }> {
  const text = await (await fetch(`${handler.metricsUrl}/metrics`)).text();
  const value = (name: string) => {
    const line = new RegExp(
      `^formgate_http_request_duration_seconds_${name}\\{route="[^"]*/targets/[^"]*"\\} (.+)$`,
      'm',
    );
    return Number(line.exec(text)?.[1]);
  };
  return { count: value('count'), sum: value('sum') };
}

async function openStreams({ handler }: TargetWorld): Promise<number> {
  const text = await (await fetch(`${handler.metricsUrl}/metrics`)).text();
  const counts = [...text.matchAll(/^formgate_open_streams\{kind="[a-z-]+"\} (\d+)$/gm)].map(([, count]) =>
    Number(count),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
