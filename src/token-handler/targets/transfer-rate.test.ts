// Tests the minimum rate of bodies over HTTP, with a window of 1.2 s instead of 30 s.
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Started, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { answerWhenRead } from '../../../test/support/upstream.ts';
import type { RunningService } from '../../service/operations/serve.ts';

const window = 1_200;
let world: TargetWorld;
let strict: RunningService;
beforeAll(async () => {
  world = await startTargetWorld({ store: 'redis' });
  strict = await world.replica({ BODY_RATE_WINDOW: `PT${window / 1_000}S`, BODY_MIN_RATE: '1024' });
});
afterAll(async () => {
  await strict.close();
  await world.close();
});
beforeEach(() => {
  world.upstream.forget();
  world.upstream.answer = answerWhenRead;
});

async function metric(line: string): Promise<number> {
  const text = await (await fetch(`${strict.metricsUrl}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((one) => one.startsWith(line))
      ?.split(' ')
      .at(-1) ?? 0,
  );
}

/** Writes `bytes` bytes of the request body every 100 ms, until the returned function is called. */
function dribble({ request }: Started, bytes: number) {
  const timer = setInterval(() => request.write('x'.repeat(bytes)), 100);
  request.once('close', () => clearInterval(timer));
  return () => clearInterval(timer);
}

const upload = (length: number) =>
  world.start({ url: strict.url, method: 'POST', headers: { 'Content-Length': length } });

describe('an upload', () => {
  it.each([
    ['stops', 0],
    ['crawls', 20],
  ])('that %s gets 408 request-timeout, and is aborted at the upstream', async (_what, bytes) => {
    const ended = Promise.withResolvers<void>();
    world.upstream.answer = (request) => void request.once('close', () => ended.resolve());
    const before = await metric('formgate_slow_bodies_total{direction="upload"}');
    const started = upload(1_000_000);
    started.request.write('begin');
    const stop = dribble(started, bytes);
    const incoming = await started.answer;
    stop();
    expect([incoming.statusCode, (await buffer(incoming)).toString()]).toEqual([
      408,
      expect.stringContaining('urn:formgate:problem:request-timeout'),
    ]);
    expect(incoming.headers.connection).toBe('close');
    await ended.promise;
    expect(await metric('formgate_slow_bodies_total{direction="upload"}')).toBe(before + 1);
    started.request.destroy();
  });

  it('that stays above the minimum rate may take any time', async () => {
    const started = upload(1_000_000);
    const stop = dribble(started, 2_000);
    let isAnswered = false;
    const note = () => {
      isAnswered = true;
    };
    started.answer.then(note, note);
    await delay(3 * window);
    stop();
    expect(isAnswered).toBe(false);
    expect(world.upstream.seen[0]?.bodyBytes).toBeGreaterThan(3_000);
    started.request.on('error', () => undefined).destroy();
  });

  it('is not ended while the upstream does not read it', async () => {
    world.upstream.answer = (request, response) => {
      request.pause();
      setTimeout(() => request.resume(), 3 * window);
      request.once('end', () => response.end('read'));
    };
    const started = upload(8_000_000);
    started.request.end(Buffer.alloc(8_000_000));
    const incoming = await started.answer;
    expect([incoming.statusCode, (await buffer(incoming)).toString()]).toEqual([200, 'read']);
  });

  it('that the client aborts ends even while the upstream does not read it', async () => {
    world.upstream.answer = (request) => void request.removeAllListeners('data').pause();
    const started = upload(100_000_000);
    started.answer.catch(() => undefined);
    started.request.on('error', () => undefined).write(Buffer.alloc(12_000_000));
    await world.upstream.waitFor(1);
    await expect.poll(() => metric('formgate_upstream_connections{state="held"}')).toBe(1);
    started.request.destroy();
    await expect.poll(() => metric('formgate_upstream_connections{state="held"}')).toBe(0);
    expect(await metric('formgate_proxied_requests_aborted_total{side="client"}')).toBeGreaterThan(0);
  });
});

const large = Buffer.alloc(40_000_000);

describe('a download', () => {
  it('that the client does not read is aborted, also at the upstream', async () => {
    const ended = Promise.withResolvers<void>();
    world.upstream.answer = (_request, response) => {
      response.once('close', () => ended.resolve());
      response.writeHead(200, { 'Content-Length': large.length }).end(large);
    };
    const { request, answer } = world.start({ url: strict.url });
    request.end();
    const incoming = await answer;
    incoming.on('error', () => undefined).pause();
    await ended.promise;
    expect(await metric('formgate_slow_bodies_total{direction="download"}')).toBe(1);
    await expect(buffer(incoming)).rejects.toThrow();
  });

  it('that the client reads slowly, but above the minimum rate, is completed', async () => {
    world.upstream.answer = (_request, response) => void response.end(large.subarray(0, 20_000_000));
    const { request, answer } = world.start({ url: strict.url });
    request.end();
    const incoming = await answer;
    let bytes = 0;
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes < 12_000_000) await delay(10);
    }
    expect(bytes).toBe(20_000_000);
  });

  it('is not ended for an upstream that pauses', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 2 }).write('a');
      setTimeout(() => response.end('b'), 3 * window);
    };
    expect((await world.send({ url: strict.url })).text).toBe('ab');
  });

  it('has no minimum rate if it is an event stream', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(large);
    };
    const { request, answer } = world.start({ url: strict.url, headers: { Accept: 'text/event-stream' } });
    request.end();
    const incoming = await answer;
    incoming.pause();
    await delay(3 * window);
    expect(incoming.destroyed).toBe(false);
    incoming.destroy();
  });
});
