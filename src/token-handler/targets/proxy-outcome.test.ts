// Tests over HTTP how proxied requests are counted: by outcome, by reason of a rejection, and by target if
// METRICS_TARGETS is on.
import prom from 'prom-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { growthOf, samplesOf } from '../../../test/support/metric-growth.ts';
import { type Sending, startTargetWorld, type TargetWorld } from '../../../test/support/targets.ts';
import { createProxyOutcomes } from './proxy-outcome-metrics.ts';

let world: TargetWorld;
beforeAll(async () => {
  world = await startTargetWorld({
    store: 'redis',
    env: { UPSTREAM_TIMEOUT: 'PT2S', UPSTREAM_ALLOWED_DOMAINS: '127.0.0.1' },
  });
  await world.direct('other', 'http://forbidden.example/');
});
afterAll(() => world.close());
beforeEach(() => {
  world.upstream.answer = (_request, response) => response.end('x');
});

const requests = 'formgate_proxied_requests_total';
const rejections = 'formgate_rejected_requests_total';
const counted = (work: () => Promise<unknown>, metric = requests) => growthOf(world.handler.metricsUrl, metric, work);
const outcome = (name: string) => ({ [`outcome="${name}",target=""`]: 1 });
const at = (target: string): Sending => ({ target: `/token-handler/v1/targets/${target}` });

describe('a proxied request is counted as', () => {
  it.each([
    [200, 'succeeded'],
    [304, 'succeeded'],
    [404, 'client-error'],
    [500, 'server-error'],
    [503, 'server-error'],
  ])('$1, if the upstream responds with $0', async (status, name) => {
    world.upstream.answer = (_request, response) => response.writeHead(status).end();
    expect(await counted(() => world.send())).toEqual(outcome(name));
  });

  it('unreachable, if the upstream is down or aborts its response', async () => {
    expect(await counted(() => world.send(at('dead/x')))).toEqual(outcome('unreachable'));
    world.upstream.answer = (_request, response) => {
      response.writeHead(200, { 'Content-Length': '9' }).write('some');
      setTimeout(() => response.destroy(), 50);
    };
    expect(await counted(() => world.send().catch(() => undefined))).toEqual(outcome('unreachable'));
  });

  it('timeout, if the upstream does not respond', async () => {
    world.upstream.answer = () => undefined;
    expect(await counted(() => world.send())).toEqual(outcome('timeout'));
  });

  it('aborted, if the client leaves before or during the response', async () => {
    const begun = Promise.withResolvers<void>();
    world.upstream.answer = (_request, response) => {
      response.write('some');
      begun.resolve();
    };
    const abandoned = () => world.handler.log.lines().filter(({ status }) => status === 499).length;
    const leave = async () => {
      const before = abandoned();
      const { request, answer } = world.start();
      request.end();
      (await answer).on('error', () => undefined);
      request.destroy();
      await expect.poll(abandoned).toBe(before + 1);
    };
    expect(await counted(leave)).toEqual(outcome('aborted'));
  });

  it('failed, if another service fails before the upstream is called', async () => {
    const stopped = await world.handler.startReplica({ env: { DIRECTORY_URL: 'http://127.0.0.1:9' } });
    onTestFinished(() => stopped.close());
    const send = () => world.send({ url: stopped.url });
    expect(await growthOf(stopped.metricsUrl, requests, send)).toEqual(outcome('failed'));
  });
});

describe('a rejected request is counted as refused, and by reason', () => {
  it.each<[string, Sending]>([
    ['session', { as: null }],
    ['csrf', { method: 'POST', unprotected: true }],
    ['path', { path: '/a/../b' }],
    ['host', at('other/x')],
    ['target', at('unknown/x')],
    ['target', at('nowhere/x')],
    ['method', { method: 'TRACE' }],
    ['service-worker', { headers: { 'Service-Worker': 'script' } }],
  ])('%s', async (reason, sending) => {
    const grown: Record<string, number>[] = [];
    const refused = await counted(async () => {
      grown.push(await counted(() => world.send(sending), rejections));
    });
    expect([refused, grown]).toEqual([outcome('refused'), [{ [`reason="${reason}"`]: 1 }]]);
  });

  it('but not if only the upstream refused it', async () => {
    world.upstream.answer = (_request, response) => response.writeHead(403).end();
    expect(await counted(() => world.send(), rejections)).toEqual({});
  });
});

it('the duration of a call to the upstream is measured once, until the head of the response', async () => {
  const metric = 'formgate_upstream_duration_seconds';
  let finish = () => {};
  world.upstream.answer = (_request, response) => {
    setTimeout(() => response.write('some'), 100);
    finish = () => void response.end('more');
  };
  const begin = async () => {
    const { request, answer } = world.start();
    request.end();
    (await answer).resume();
  };
  // The duration is observed when the response headers have arrived, although the response is still open.
  const sums = await counted(begin, `${metric}_sum`);
  expect(sums['']).toBeGreaterThan(0.09);
  expect(await counted(async () => finish(), `${metric}_count`)).toEqual({});
  expect(await counted(() => world.send({ as: null }), `${metric}_count`)).toEqual({});
});

describe('METRICS_TARGETS', () => {
  it('adds a target label to requests that name a target of the client', async () => {
    const replica = await world.replica({ METRICS_TARGETS: 'on' });
    onTestFinished(() => replica.close());
    await world.send({ url: replica.url });
    await world.send({ url: replica.url, ...at('root/x') });
    await world.send({ url: replica.url, ...at('invented/x') });
    expect(await samplesOf(replica.metricsUrl, requests)).toMatchObject({
      'outcome="succeeded",target="api"': 1,
      'outcome="succeeded",target="root"': 1,
      'outcome="refused",target=""': 1,
    });
  });

  it('names a hundred targets, and counts further ones together', async () => {
    const registry = new prom.Registry();
    const outcomes = createProxyOutcomes({ registry, namesTargets: true });
    for (let nth = 0; nth < 1_000; nth += 1) outcomes.of(`target-${nth}`).succeeded.inc();
    outcomes.of('target-0').succeeded.inc();
    const text = await registry.metrics();
    expect(text.match(/outcome="succeeded",target="target-/g)).toHaveLength(100);
    expect(text).toContain('{outcome="succeeded",target="other"} 900');
    expect(text).toContain('{outcome="succeeded",target="target-0"} 2');
  });
});
