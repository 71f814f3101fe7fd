// Tests that the calls to the identity provider during a sign-in are spans of the sign-in's trace. The identity
// provider receives no trace id and no request id, and the spans contain no token, code, verifier or password.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { captureLog } from '../../../test/support/captured-log.ts';
import { type Collector, openCollector } from '../../../test/support/collector.ts';
import { type HttpTap, startHttpTap } from '../../../test/support/http-tap.ts';
import { startTestPlatform, type TestPlatform } from '../../../test/support/platform.ts';
import { type SessionWorld, startSessionWorld } from '../../../test/support/sessions.ts';
import { createSiteBrowser } from '../../../test/support/site-browser.ts';
import { parseConfig } from '../../service/operations/config.ts';
import { startTracing } from '../../service/tracing/start-tracing.ts';
import { installTracing, type Tracing } from '../../service/tracing/tracing.ts';
import { tracingFields } from '../../service/tracing/tracing-fields.ts';

let collector: Collector;
let tracing: Tracing | undefined;
let platform: TestPlatform;
let provider: HttpTap;
let world: SessionWorld;
beforeAll(async () => {
  collector = await openCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' };
  tracing = await startTracing('test', parseConfig(z.object(tracingFields), env), captureLog().log);
  platform = await startTestPlatform();
  const { origin, pathname } = new URL(platform.access.url);
  provider = await startHttpTap(origin);
  world = await startSessionWorld({ platform, accessUrl: `${provider.url}${pathname}` });
});
afterAll(async () => {
  await world.close();
  await provider.close();
  await platform.close();
  await tracing?.close();
  installTracing(undefined);
  await collector.close();
});

it('are spans with method, operation and status', async () => {
  const browser = createSiteBrowser();
  const callback = await world.toCallback(browser);
  const landed = await browser.request(callback);
  expect(landed.status).toBe(302);
  const operations = () =>
    collector.spans
      .filter(({ attributes }) => attributes['service.peer.name'] === 'identity-provider')
      .map(({ name, attributes }) => [name, attributes['formgate.operation'], attributes['http.response.status_code']]);
  await expect.poll(operations).toEqual(
    expect.arrayContaining([
      ['GET identity-provider', 'discovery', 200],
      ['POST identity-provider', 'token', 200],
      ['GET identity-provider', 'keys', 200],
    ]),
  );
  const redeemed = collector.spans.find(({ attributes }) => attributes['formgate.operation'] === 'token');
  // The span of the callback request ends after the spans within it, so it may be exported later.
  const parent = () => collector.spans.find(({ spanId }) => spanId === redeemed?.parentId);
  await expect.poll(() => parent()?.name).toBe('GET /token-handler/clients/:clientId/callback');

  const call = provider.exchanges.find(({ method, body }) => method === 'POST' && body.includes('code='));
  const secrets = [...new URLSearchParams(call?.body).entries()].filter(([name]) => /^code/.test(name));
  const tokens = Object.entries(JSON.parse(call?.answer ?? '{}')).filter(([name]) => /_token$/.test(name));
  expect([...secrets, ...tokens].map(([name]) => name).toSorted()).toEqual([
    'access_token',
    'code',
    'code_verifier',
    'id_token',
    'refresh_token',
  ]);
  for (const [name, value] of [...secrets, ...tokens]) expect(collector.raw(), name).not.toContain(value);
});

it('carry neither a trace nor a request id', () => {
  expect(provider.exchanges.length).toBeGreaterThan(2);
  for (const { target, headers } of provider.exchanges) {
    expect(Object.keys(headers), target).not.toContain('traceparent');
    expect(Object.keys(headers), target).not.toContain('x-request-id');
  }
});
