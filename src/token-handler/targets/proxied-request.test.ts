// Tests how bodies are proxied, and what happens if the upstream or the client fails. Upstream and client use real
// HTTP.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { until as untilTrue } from '../../../test/support/until.ts';
import { answerWhenRead } from '../../../test/support/upstream.ts';
import type { RunningService } from '../../service/operations/serve.ts';

let world: TargetWorld;
/** A replica of the token handler with a short UPSTREAM_TIMEOUT. */
let hasty: RunningService;
const firstByte = 1_500;

beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  hasty = await world.replica({ UPSTREAM_TIMEOUT: `PT${firstByte / 1_000}S` });
});
afterAll(async () => {
  await hasty.close();
  await world.close();
});
beforeEach(() => {
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
});

const nextData = (stream: IncomingMessage) =>
  new Promise<string>((resolve) => stream.once('data', (chunk: Buffer) => resolve(chunk.toString())));
const until = (holds: () => boolean) => untilTrue(`${holds}`, holds, { interval: 10 });

/** Waits until the result of `count` has not changed for 300 ms, and returns this result. */
async function untilStuck(count: () => number): Promise<number> {
  let last = -1;
  for (; last !== count(); await delay(300)) last = count();
  return last;
}

describe('a request body', () => {
  it.each([0, 1, 7, 16_384, 65_536, 1_000_000, 5_000_000])('of %s bytes arrives as it was sent', async (bytes) => {
    const body = Buffer.alloc(bytes, 'aß\0\r\n');
    for (const method of ['POST', 'DELETE', 'GET']) {
      expect((await world.send({ method, body, headers: { 'Content-Length': bytes } })).status).toBe(200);
      const seen = world.upstream.last();
      expect([seen.bodyBytes, seen.isComplete]).toEqual([bytes, true]);
      if (bytes <= 1_000_000) expect(seen.body === body.toString('latin1')).toBe(true);
    }
  });

  it('is streamed: the upstream receives its beginning before the client has sent its end', async () => {
    for (const headers of [{ 'Content-Length': '10' }, { 'Transfer-Encoding': 'chunked' }]) {
      world.upstream.forget();
      const { request, answer } = world.start({ method: 'POST', headers });
      request.write('begin');
      await until(() => world.upstream.seen[0]?.body === 'begin');
      request.end('later');
      expect((await answer).statusCode).toBe(200);
      expect(world.upstream.last().body).toBe('beginlater');
      (await answer).resume();
    }
  });

  it('without a length arrives completely, but its trailers are not forwarded', async () => {
    const { request, answer } = world.start({
      method: 'POST',
      headers: { Trailer: 'X-T', 'Transfer-Encoding': 'chunked' },
    });
    request.write('x');
    request.addTrailers({ 'X-T': '1', 'X-XSRF-TOKEN': 'x', Cookie: 'x' });
    request.end();
    (await answer).resume();
    expect(world.upstream.last()).toMatchObject({ body: 'x', isComplete: true });
    expect(world.upstream.last().headers).not.toHaveProperty('trailer');
  });

  it('is not read from the client while the upstream does not read it (back-pressure)', async () => {
    let paused: IncomingMessage | undefined;
    world.upstream.answer = (request) => {
      request.removeAllListeners('data');
      request.pause();
      paused = request;
    };
    const { request, answer } = world.start({ method: 'POST', headers: { 'Content-Length': String(256 * 1_048_576) } });
    answer.catch(() => undefined);
    let written = 0;
    const chunk = Buffer.alloc(1_048_576);
    const pump = () => {
      while (written < 256 && !request.destroyed) {
        written += 1;
        if (!request.write(chunk)) return void request.once('drain', pump);
      }
    };
    pump();
    await until(() => paused !== undefined);
    const stuck = await untilStuck(() => written);
    // The client could write only as many megabytes as the buffers of the sockets hold.
    expect(stuck).toBeLessThan(64);
    request.destroy();
  });

  it('that the client aborts is aborted at the upstream, too', async () => {
    let aborted = false;
    world.upstream.answer = (request) =>
      void request.once('close', () => {
        aborted = !request.complete;
      });
    const { request, answer } = world.start({ method: 'POST', headers: { 'Content-Length': '100' } });
    answer.catch(() => undefined);
    request.write('begin');
    await world.upstream.waitFor(1);
    request.destroy();
    await until(() => aborted);
  });

  it('does not delay the response of an upstream that responds without reading it', async () => {
    world.upstream.answer = (request, response) => {
      request.pause();
      response.writeHead(413).end('too large');
    };
    const { request, answer } = world.start({ method: 'POST', headers: { 'Content-Length': String(50 * 1_048_576) } });
    const chunk = Buffer.alloc(1_048_576);
    let sent = 0;
    const pump = () => {
      while (sent < 50) {
        sent += 1;
        if (!request.write(chunk)) return void request.once('drain', pump);
      }
      request.end();
    };
    pump();
    request.on('error', () => undefined);
    const incoming = await answer;
    expect([incoming.statusCode, (await buffer(incoming)).toString()]).toEqual([413, 'too large']);
  });
});

describe('a response', () => {
  const answer = (answerWith: (response: ServerResponse) => void) => {
    world.upstream.answer = (_request, response) => answerWith(response);
  };

  it('is streamed: the client receives its head before the upstream has sent its end', async () => {
    let end: () => void = () => undefined;
    answer((response) => {
      response.writeHead(201).flushHeaders();
      end = () => void response.end('later');
    });
    const { request, answer: head } = world.start();
    request.end();
    const incoming = await head;
    expect(incoming.statusCode).toBe(201);
    const data = nextData(incoming);
    end();
    expect(await data).toBe('later');
  });

  it('keeps its Content-Length, and its bytes whatever their Content-Encoding', async () => {
    const body = gzipSync('x'.repeat(100_000));
    answer(
      (response) =>
        void response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': body.length }).end(body),
    );
    const { request, answer: head } = world.start({ headers: { 'Accept-Encoding': 'gzip' } });
    request.end();
    const incoming = await head;
    expect(incoming.headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(body.length) });
    expect((await buffer(incoming)).equals(body)).toBe(true);
  });

  it('keeps its trailers, except for those about framing, routing and cookies', async () => {
    answer((response) => {
      response.writeHead(200, { Trailer: 'X-Checksum' });
      response.write('x');
      response.addTrailers({ 'X-Checksum': 'abc', 'Set-Cookie': 'a=b', 'X-Request-Id': 'x', Vary: 'x' });
      response.end();
    });
    const { trailers, headers } = await world.send();
    expect(trailers).toEqual({ 'x-checksum': 'abc' });
    expect(headers.trailer).toBe('X-Checksum');
  });

  it('has no body for HEAD, 204 and 304, and keeps its Content-Length for HEAD', async () => {
    answer((response) => void response.writeHead(200, { 'Content-Length': 5, ETag: '"1"' }).end('hello'));
    const head = await world.send({ method: 'HEAD' });
    expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', '5']);
    answer((response) => void response.writeHead(204, { ETag: '"1"' }).end());
    const empty = await world.send();
    expect([empty.status, empty.text, empty.headers['content-length'], empty.headers.etag]).toEqual([
      204,
      '',
      undefined,
      '"1"',
    ]);
    answer((response) => void response.writeHead(304, { ETag: '"1"' }).end());
    const same = await world.send({ headers: { 'If-None-Match': '"1"' } });
    expect([same.status, same.text, same.headers.etag]).toEqual([304, '', '"1"']);
  });

  it('with a status that HTTP does not define is passed on, and is counted by its class', async () => {
    const statuses = [299, 599, 999];
    for (const made of statuses) {
      answer((response) => void response.writeHead(made).end());
      expect((await world.send()).status).toBe(made);
    }
    const metrics = await (await fetch(`${world.handler.metricsUrl}/metrics`)).text();
    for (const label of ['2xx', '5xx']) expect(metrics).toMatch(new RegExp(`status="${label}"\\} [1-9]`));
    for (const made of statuses) expect(metrics).not.toContain(`status="${made}"`);
  });

  it('with status 103 (Early Hints) is passed on before the final one, without cookies', async () => {
    answer((response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload', 'set-cookie': 'a=b' }, () => {
        setTimeout(() => response.end('done'), 20);
      });
    });
    const { request, answer: head } = world.start();
    const informed = new Promise<{ statusCode: number; headers: object }>((resolve) =>
      request.once('information', resolve),
    );
    request.end();
    const { statusCode, headers } = await informed;
    expect([statusCode, headers]).toEqual([103, { link: '</style.css>; rel=preload' }]);
    expect((await buffer(await head)).toString()).toBe('done');
  });

  it('that is a redirect is passed on and not followed', async () => {
    answer((response) => void response.writeHead(302, { Location: '/elsewhere' }).end());
    const { status, headers } = await world.send();
    expect([status, headers.location, world.upstream.seen.length]).toEqual([302, '/elsewhere', 1]);
  });

  it('of any status is passed on unchanged, including errors of the upstream', async () => {
    for (const status of [400, 401, 403, 404, 409, 418, 429, 500, 502, 503, 504, 599]) {
      answer((response) => void response.writeHead(status, { 'Content-Type': 'text/plain' }).end(`says ${status}`));
      const sent = await world.send();
      expect([sent.status, sent.text, sent.headers['content-type']]).toEqual([status, `says ${status}`, 'text/plain']);
    }
  });

  it('is not read from the upstream while the client does not read it (back-pressure)', async () => {
    let written = 0;
    answer((response) => {
      const chunk = Buffer.alloc(1_048_576);
      const pump = () => {
        while (written < 256 && !response.destroyed) {
          written += 1;
          if (!response.write(chunk)) return void response.once('drain', pump);
        }
      };
      pump();
    });
    const { request, answer: head } = world.start();
    request.end();
    const incoming = await head;
    incoming.pause();
    expect(await untilStuck(() => written)).toBeLessThan(64);
    incoming.destroy();
  });

  it('is aborted at the upstream if the client disconnects', async () => {
    let closed = false;
    answer((response) => {
      response.write('x');
      response.once('close', () => {
        closed = true;
      });
    });
    const { request, answer: head } = world.start();
    request.end();
    (await head).destroy();
    await until(() => closed);
    await until(() => world.handler.log.lines().some((line) => line.status === 499));
  });

  it('that the upstream aborts is aborted for the client, so that it does not seem complete', async () => {
    for (const headers of [{ 'Content-Length': 10 }, {}]) {
      answer((response) => {
        response.writeHead(200, headers).write('begin');
        setTimeout(() => response.destroy(), 20);
      });
      const { request, answer: head } = world.start();
      request.end();
      await expect(buffer(await head)).rejects.toThrow('aborted');
    }
    await until(() => world.handler.log.lines().some((line) => line.status === 500 && line.msg === 'request failed'));
  });
});

describe('an upstream', () => {
  it('that does not begin its response within UPSTREAM_TIMEOUT causes a 504', async () => {
    let given = false;
    world.upstream.answer = (_request, response) => {
      response.once('close', () => {
        given = true;
      });
    };
    const started = performance.now();
    const { status, problem } = await world.send({ url: hasty.url });
    expect([status, problem]).toEqual([504, 'dependency-timeout']);
    expect(performance.now() - started).toBeGreaterThan(firstByte - 5);
    await until(() => given);
  });

  it('may take any time to finish a response that it has begun', async () => {
    world.upstream.answer = (_request, response) => {
      response.write('a');
      setTimeout(() => response.end('b'), firstByte * 2);
    };
    expect((await world.send({ url: hasty.url })).text).toBe('ab');
  });

  it('does not time out while the client sends its body slowly', async () => {
    const { request, answer } = world.start({ url: hasty.url, method: 'POST', headers: { 'Content-Length': '6' } });
    for (let index = 0; index < 6; index += 1) {
      request.write('x');
      await delay(firstByte / 3);
    }
    expect((await answer).statusCode).toBe(200);
    expect(world.upstream.last().body).toBe('xxxxxx');
    (await answer).resume();
  });

  it('does not time out while the client pauses in the middle of its body', async () => {
    const { request, answer } = world.start({ url: hasty.url, method: 'POST', headers: { 'Content-Length': '6' } });
    request.write('xxx');
    await delay(firstByte * 3);
    request.end('xxx');
    expect((await answer).statusCode).toBe(200);
    (await answer).resume();
  });

  it('that closes a kept-alive connection gets a GET or HEAD again, and never a POST or PUT', async () => {
    let asked = 0;
    const dropSecond = (request: IncomingMessage, response: ServerResponse) => {
      asked += 1;
      if (asked === 2) request.socket.destroy();
      else response.end('x');
    };
    for (const [method, statuses] of [
      ['GET', [200, 200]],
      ['HEAD', [200, 200]],
      ['POST', [200, 502]],
      ['PUT', [200, 502]],
    ] as const) {
      asked = 0;
      world.upstream.answer = dropSecond;
      const answered = [(await world.send({ method })).status, (await world.send({ method })).status];
      expect([method, answered]).toEqual([method, statuses]);
    }
  });

  it('that does not speak HTTP, or sends endless headers, causes a 502', async () => {
    for (const bytes of [
      'nonsense\r\n\r\n',
      `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(100_000)}`,
      '',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
    ]) {
      world.upstream.answer = (request) => void request.socket.end(bytes);
      const { status, problem } = await world.send({ method: 'POST' });
      expect([status, problem]).toEqual([502, 'dependency-failed']);
    }
  });

  it('that fails is counted and logged, without the access token, the cookie or the path', async () => {
    const text = world.handler.log.text();
    expect(text).toContain('request failed');
    for (const secret of ['Bearer eyJ', world.person.cookie, world.person.csrf, '/base/v1'])
      expect(text).not.toContain(secret);
    const metrics = await (await fetch(`${world.handler.metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/formgate_dependency_failures_total\{dependency="upstream",kind="failed"\} [1-9]/);
  });
});
