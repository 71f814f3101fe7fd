// Tests that the token handler passes one request id and one trace id to the form service and the platform's services.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { captureLog } from '../support/captured-log.ts';
import { type FormReplica, type FormWorld, startFormWorld } from '../support/form-world.ts';
import { configure, permit } from '../support/forms.ts';
import { type SessionWorld, startSessionWorld } from '../support/sessions.ts';

const platformLog = captureLog('info');
let world: FormWorld;
let forms: FormReplica;
let site: SessionWorld;
beforeAll(async () => {
  world = await startFormWorld({ log: platformLog });
  forms = await world.start();
  site = await startSessionWorld({
    platform: world.platform,
    client: { targets: [{ id: 'forms', upstream: 'urn:example:platform:form-service' }] },
    directory: { DIR_PLATFORM_FORM_SERVICE: forms.url },
  });
});
afterAll(async () => {
  await site?.close();
  await world?.close();
});

interface Line {
  requestId?: string;
  traceId?: string;
  route?: string;
  targetId?: string;
  clientId?: string;
}

const linesOf = (text: string, id: string) =>
  text
    .split('\n')
    .filter((line) => line.includes(id))
    .map((line) => JSON.parse(line) as Line);

async function ask(headers: Record<string, string> = {}, definitionId = permit.id): Promise<string> {
  const { browser } = await site.signIn();
  const url = `${site.site}/token-handler/v1/targets/forms/form/v1/definitions/${definitionId}`;
  const { status, headers: answered } = await browser.request(url, { headers });
  expect(status).toBe(200);
  return answered.get('x-request-id') ?? '';
}

it('a proxied request, the request of the form service, and its calls to the platform have the same ids', async () => {
  const id = await ask({ accept: 'application/json' });
  expect(id).toMatch(/^[\da-f-]{36}$/);
  const logs = { handler: site.handler.log.text, forms: forms.logText, platform: platformLog.text };
  for (const [name, text] of Object.entries(logs)) {
    await expect.poll(() => linesOf(text(), id).length).toBeGreaterThan(0);
    for (const line of linesOf(text(), id))
      expect([name, line.requestId, line.traceId]).toEqual([name, id, id.replaceAll('-', '')]);
  }
  expect(linesOf(site.handler.log.text(), id).at(-1)).toMatchObject({ targetId: 'forms', clientId: site.clientId });
  expect(linesOf(platformLog.text(), id).map(({ route }) => route)).toContainEqual(
    expect.stringContaining('/configuration/v2/'),
  );
});

it('a trace that the client has begun is in the lines of all of them', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  // The form service asks the platform for a definition that it has not read before.
  await configure(world.platform, 'platform', 'form-service', { unread: { ...permit, id: 'unread' } });
  const id = await ask({ traceparent: `00-${traceId}-00f067aa0ba902b7-01` }, 'unread');
  for (const text of [site.handler.log.text, forms.logText, platformLog.text]) {
    await expect.poll(() => linesOf(text(), id).length).toBeGreaterThan(0);
    for (const line of linesOf(text(), id)) expect(line.traceId).toBe(traceId);
  }
});
