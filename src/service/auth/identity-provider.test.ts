// Tests the startup check of the identity provider against a real identity provider.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess, testServiceSecret } from '../../../test/support/access.ts';
import { type CapturedLog, captureLog } from '../../../test/support/captured-log.ts';
import { createPlatformCalls, type PlatformCalls } from '../../../test/support/platform-calls.ts';
import { startTcpGate, type TcpGate } from '../../../test/support/tcp-gate.ts';
import { createServiceAccount } from '../../platform/service-account.ts';
import { createMetrics, type Metrics } from '../operations/metrics.ts';
import type { StartupCheck } from '../operations/startup-check.ts';
import { checkIdentityProvider } from './identity-provider.ts';

/** Milliseconds that a pod waits for the provider. Short, because some tests wait for the whole time. */
const patience = 2_000;
let access: TestAccess;
let gate: TcpGate;
let calls: PlatformCalls;
let check: StartupCheck | undefined;
let log: CapturedLog;
let metrics: Metrics;
beforeAll(async () => {
  access = await startTestAccess();
  calls = createPlatformCalls();
});
afterAll(async () => {
  await calls.close();
  await access.close();
});
afterEach(async () => {
  check?.stop();
  await gate?.close();
});

interface Settings {
  accessUrl?: string;
  publicUrl?: string;
  clientId?: string;
  secret?: string;
  patience?: number;
}

async function start(settings: Settings = {}): Promise<StartupCheck> {
  const { accessUrl = access.url, publicUrl = access.url, clientId = access.urns.service('form-service') } = settings;
  const clientSecret = settings.secret ?? testServiceSecret(clientId);
  log = captureLog();
  metrics = createMetrics();
  const account = createServiceAccount({ ...calls.options, accessUrl, clientId, clientSecret });
  const config = { ACCESS_SERVICE_URL: accessUrl, ACCESS_SERVICE_PUBLIC_URL: publicUrl };
  const pace = { patience: settings.patience ?? patience, firstRetry: 50, longestRetry: 100 };
  check = checkIdentityProvider({ config, account, log: log.log, metrics, pace });
  return check;
}

const problem = () => check?.problem();
const outcomes = async () => {
  const values = (await metrics.registry.getSingleMetric('formgate_startup_checks_total')?.get())?.values ?? [];
  return values.map(({ labels }) => labels.outcome).toSorted();
};

describe('a pod', () => {
  it('with correct settings does not wait', async () => {
    await start();
    await expect.poll(problem, { interval: 10 }).toBeUndefined();
    expect(await outcomes()).toEqual(['ok']);
  });

  it.each([
    ['CLIENT_SECRET', () => ({ secret: 'a wrong secret' }), /rejected this service's credentials; check CLIENT_ID/],
    ['CLIENT_ID', () => ({ clientId: 'nobody' }), /rejected this service's credentials; check CLIENT_ID/],
    ['ACCESS_SERVICE_PUBLIC_URL', () => ({ publicUrl: 'https://id.example.org/auth' }), /ACCESS_SERVICE_PUBLIC_URL/],
    [
      'ACCESS_SERVICE_URL',
      () => ({ accessUrl: new URL(access.url).origin }),
      /ACCESS_SERVICE_URL leads to no identity provider/,
    ],
    [
      'host',
      () => ({ accessUrl: `http://${'x'.repeat(64)}.example/auth` }),
      /the host of ACCESS_SERVICE_URL does not exist/,
    ],
    [
      'scheme',
      () => ({ accessUrl: access.url.replace('http:', 'https:') }),
      /no trusted TLS; check ACCESS_SERVICE_URL/,
    ],
  ] as const)('with a wrong %s stays unready, and its log says what to check', async (_name, settings, message) => {
    await start(settings());
    await expect.poll(problem, { interval: 10 }).toMatch(message);
    await delay(patience + 300);
    expect(problem()).toMatch(message);
    expect(log.lines().filter(({ msg }) => message.test(String(msg)))[0]).toMatchObject({ level: 'error' });
    expect(await outcomes()).toEqual(['wrong_setting']);
  });

  it('becomes ready when its account is repaired at the identity provider', async () => {
    const clientId = `late-${randomUUID()}`;
    const secret = randomUUID();
    await start({ clientId, secret, patience: 60_000 });
    await expect.poll(problem, { interval: 10 }).toContain('rejected');
    await access.addClient('core', { clientId, secret, grants: ['client_credentials'] });
    await expect.poll(problem).toBeUndefined();
  });
});

describe('an identity provider that cannot be reached', () => {
  const throughGate = async (): Promise<string> => {
    const url = new URL(access.url);
    gate = await startTcpGate(Number(url.port || 80));
    url.host = `127.0.0.1:${gate.port}`;
    return url.href;
  };

  it.each(['shut', 'freeze'] as const)('delays a pod for a limited time only: %s', async (fault) => {
    const accessUrl = await throughGate();
    await gate[fault]();
    const started = performance.now();
    await start({ accessUrl });
    expect(problem()).toMatch(/identity provider/);
    await expect.poll(problem, { interval: 10 }).toBeUndefined();
    expect(performance.now() - started).toBeGreaterThan(patience - 50);
    expect(log.text()).toContain('the pod no longer waits for it');
  });

  it('makes the pod ready as soon as it recovers', async () => {
    const accessUrl = await throughGate();
    await gate.shut();
    await start({ accessUrl, patience: 60_000 });
    await expect.poll(problem, { interval: 10 }).toContain('cannot be reached');
    await gate.open();
    await expect.poll(problem, { interval: 10 }).toBeUndefined();
    expect(log.text()).not.toContain('the pod no longer waits for it');
  });

  it('does not make the pod ready if it had rejected the credentials', async () => {
    const accessUrl = await throughGate();
    await start({ accessUrl, secret: 'a wrong secret' });
    await expect.poll(problem, { interval: 10 }).toContain('rejected');
    await gate.shut();
    await delay(patience + 300);
    expect(problem()).toContain('rejected');
  });

  it('only causes an error in the log if it rejects the credentials of a ready pod', async () => {
    const accessUrl = await throughGate();
    await gate.shut();
    await start({ accessUrl, secret: 'a wrong secret' });
    await expect.poll(problem, { interval: 10 }).toBeUndefined();
    await gate.open();
    await expect.poll(() => log.text()).toContain('check CLIENT_ID and CLIENT_SECRET');
    expect(problem()).toBeUndefined();
  });
});
