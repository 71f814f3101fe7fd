// Follows one request of a browser through all processes of `npm start`, by the spans that the processes send to a
// collector. The spans come from the token handler, the form service and its calls, the delivery of the outbox row, the
// jobs of the platform server, and a run of the reconciler.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { businessLicenceId, exampleFormData } from '../../dev/demo-data/business-licence.ts';
import { createFormgate, type Formgate } from '../../dev/start.ts';
import { type CollectedSpan, type Collector, openCollector } from '../support/collector.ts';
import { createSiteBrowser, type SiteBrowser } from '../support/site-browser.ts';

let collector: Collector;
let formgate: Formgate;
let directory: string;
let url: string;
const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_BSP_SCHEDULE_DELAY: '50' };

beforeAll(async () => {
  collector = await openCollector();
  settings.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url;
  Object.assign(process.env, settings);
  directory = await mkdtemp(join(tmpdir(), 'formgate-tracing-'));
  await chmod(directory, 0o755);
  const quiet = { done: () => undefined, warn: () => undefined };
  formgate = createFormgate({ port: 0, directory, fresh: false, help: false, urnPrefix: 'urn:example' }, quiet);
  url = (await formgate.start()).publicUrl;
}, 120_000);
afterAll(async () => {
  for (const name of Object.keys(settings)) delete process.env[name];
  await formgate.stop();
  await collector.close().catch(() => undefined);
  await rm(directory, { recursive: true, force: true });
});

async function signIn(): Promise<SiteBrowser> {
  const client = `${url}/token-handler/clients/formgate-console`;
  const query = new URLSearchParams({ tenant: 'demo', callbackUrl: `${client}/callback`, returnTo: '/console/demo' });
  const browser = createSiteBrowser();
  const form = await browser.follow(await browser.request(`${client}/auth?${query}`));
  const isConsole = (address: URL) => address.pathname.startsWith('/console');
  await browser.follow(await browser.submit(form, { username: 'alice@example.com', password: 'alice' }), isConsole);
  return browser;
}

const traceId = 'c0ffee00c0ffee00c0ffee00c0ffee00';
const address = 'canary.address@example.org';

/** Creates a draft through the proxy, as a single-page app does. Returns its id. */
async function createDraft(browser: SiteBrowser): Promise<string> {
  const forms = `${url}/token-handler/targets/form-service/form/v1/forms?canaryQuery=1`;
  const { status, text } = await browser.request(forms, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-XSRF-TOKEN': browser.cookie(url, 'XSRF-TOKEN') ?? '',
      traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    },
    body: JSON.stringify({
      definitionId: businessLicenceId,
      applicant: { addressAs: 'Canary Name', channels: [{ channel: 'email', address }] },
      data: exampleFormData.begun,
    }),
  });
  expect({ status, text }).toMatchObject({ status: 201 });
  return (JSON.parse(text) as { id: string }).id;
}

const named = (service: string, name: string) => (span: CollectedSpan) =>
  span.service === service && span.name === name;
const untilExported = (...needed: [service: string, name: string][]) =>
  collector.until((spans) => needed.every(([service, name]) => spans.some(named(service, name))));
const inTrace = (id: string) => collector.spans.filter((span) => span.traceId === id);

function find(spans: CollectedSpan[], service: string, name: string): CollectedSpan {
  const found = spans.find(named(service, name));
  const names = spans.map((span) => `${span.service}: ${span.name}`).join('\n');
  if (!found) throw new Error(`no span ${service}: ${name} among\n${names}`);
  return found;
}

describe('one request through the proxy', () => {
  let formId: string;

  it('is one trace through the token handler and the form service', async () => {
    formId = await createDraft(await signIn());
    // Each process exports its spans in the order in which they end, independently of the others.
    await untilExported(
      ['token-handler', 'POST /token-handler/v1/targets/:targetId/*path'],
      ['form-service', 'deliver form-created'],
      ['platform-server', 'job deliver'],
    );
    const spans = inTrace(traceId);
    const proxied = find(spans, 'token-handler', 'POST /token-handler/v1/targets/:targetId/*path');
    const upstream = find(spans, 'token-handler', 'POST upstream');
    const created = find(spans, 'form-service', 'POST /form/v1/forms');
    expect(proxied.parentId).toBe('b7ad6b7169203331');
    expect(upstream.parentId).toBe(proxied.spanId);
    expect(created.parentId).toBe(upstream.spanId);
    expect(find(spans, 'form-service', 'INSERT').parentId).toBe(created.spanId);
  });

  it('leads to its deliveries, whose traces link to it, and to the jobs of the platform server', async () => {
    const created = find(inTrace(traceId), 'form-service', 'POST /form/v1/forms');
    const delivery = find(collector.spans, 'form-service', 'deliver form-created');
    const [link] = delivery.links;
    expect(link?.traceId).toBe(traceId);
    expect(delivery.parentId).toBe('');
    expect(inTrace(traceId).find(({ spanId }) => spanId === link?.spanId)?.traceId).toBe(created.traceId);
    const spans = inTrace(delivery.traceId);
    const call = find(spans, 'form-service', 'POST events');
    const accepted = find(spans, 'platform-server', 'POST /event/v1/events');
    const routed = find(spans, 'platform-server', 'job route-event');
    expect(call.parentId).toBe(delivery.spanId);
    expect(accepted.parentId).toBe(call.spanId);
    expect(spans.map(({ spanId }) => spanId)).toContain(routed.parentId);
    expect(spans.some(named('platform-server', 'job deliver'))).toBe(true);
  });

  it('is in the log by its trace', async () => {
    for (const name of ['token-handler', 'forms']) {
      const log = await readFile(join(directory, 'logs', `${name}.log`), 'utf8');
      expect(log).toContain(`"traceId":"${traceId}"`);
    }
  });

  it('of a run of the reconciler leads to the notices that it causes', async () => {
    const envFile = join(directory, 'reconciler.env');
    const main = join(import.meta.dirname, '../../reconciler/main.ts');
    const child = spawn(process.execPath, [`--env-file=${envFile}`, main, '--only', 'expire'], {
      stdio: 'ignore',
      env: { PATH: process.env.PATH, ...settings, WARN_BEFORE: 'P0D', LOCK_AFTER: 'PT1S' },
    });
    expect((await once(child, 'exit'))[0]).toBe(0);
    await untilExported(['reconciler', 'reconcile'], ['form-service', 'deliver form-locked']);
    const run = find(collector.spans, 'reconciler', 'reconcile');
    const spans = inTrace(run.traceId);
    expect(find(spans, 'reconciler', 'lock').parentId).toBe(run.spanId);
    const [link] = find(collector.spans, 'form-service', 'deliver form-locked').links;
    expect(link?.traceId).toBe(run.traceId);
    expect(spans.map(({ spanId }) => spanId)).toContain(link?.spanId);
  });

  it('puts no address, name, code, token, id of a form, query or form data into any span', async () => {
    const mails = (await (await fetch(`${url}/mailbox/messages`)).json()) as { to: string }[];
    expect(mails.some((mail) => JSON.stringify(mail).includes(address))).toBe(true);
    const values = Object.values(exampleFormData.begun).filter((value) => typeof value === 'string');
    for (const canary of [formId, 'canary', 'Canary', 'alice@example.com', 'demo-registration', ...values])
      expect(collector.raw()).not.toContain(canary);
    // The pattern requires eight more characters after `eyJ`, because the random bytes of span ids may contain these
    // three letters.
    expect(collector.raw()).not.toMatch(/eyJ[\w-]{8}/);
    for (const { attributes, name } of collector.spans)
      expect(`${name} ${JSON.stringify(attributes)}`).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|@|\?|https?:/);
  });

  it.each(['is slow', 'answers 500', 'is gone'])('is served as before when the collector %s', async (state) => {
    const browser = await signIn();
    collector.delay = state === 'is slow' ? 60_000 : 0;
    if (state === 'answers 500') collector.status = 500;
    if (state === 'is gone') await collector.close();
    await createDraft(browser);
    for (let count = 0; count < 20; count += 1) {
      const began = performance.now();
      const target = `${url}/token-handler/targets/form-service/form/v1/forms?mine=true`;
      expect((await browser.request(target)).status).toBe(200);
      expect(performance.now() - began).toBeLessThan(8_000);
    }
    Object.assign(collector, { delay: 0, status: 200 });
  });
});
