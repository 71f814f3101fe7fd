// Tests the inhibit rules of the example configuration with Debian's `prometheus-alertmanager`. An alert suppresses
// only the warnings that it makes redundant.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findFreePort } from '../../dev/ports.ts';
import { endWithThisProcess, hasEnded } from '../support/child-processes.ts';
import { untilReady } from './prometheus-server.ts';

const example = join(import.meta.dirname, '../../charts/formgate/examples/alertmanager.yaml');
type Labels = Record<string, string>;

let folder: string;
let alertmanager: ChildProcess;
let base: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'formgate-alertmanager-'));
  const address = `127.0.0.1:${await findFreePort()}`;
  base = `http://${address}`;
  const options = [`--config.file=${example}`, '--storage.path=data', `--web.listen-address=${address}`];
  alertmanager = spawn('prometheus-alertmanager', [...options, '--cluster.listen-address='], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  endWithThisProcess(alertmanager);
  await untilReady(alertmanager, 'prometheus-alertmanager', base);
});
afterAll(async () => {
  if (alertmanager?.pid !== undefined && !hasEnded(alertmanager)) {
    const ended = new Promise((resolve) => alertmanager.once('exit', resolve));
    alertmanager.kill('SIGKILL');
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

/** The alerts of a release that fire together, by a name that describes their part in the test. */
async function fire(release: string, alerts: Record<string, Labels>): Promise<void> {
  const body = Object.entries(alerts).map(([part, labels]) => ({
    labels: { namespace: 'forms', release, ...labels },
    annotations: { part },
  }));
  const options = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(`${base}/api/v2/alerts`, options);
  expect(response.status).toBe(200);
}

/** The alerts of a release that another alert suppresses, in alphabetical order. */
async function suppressed(release: string): Promise<string[]> {
  const response = await fetch(`${base}/api/v2/alerts?filter=${encodeURIComponent(`release="${release}"`)}`);
  const alerts = (await response.json()) as { annotations: { part: string }; status: { inhibitedBy: string[] } }[];
  return alerts
    .filter(({ status }) => status.inhibitedBy.length > 0)
    .map(({ annotations }) => annotations.part)
    .sort();
}

test('a certificate that expires in two days suppresses only its own warning', async () => {
  const certificate = (job: string, name: string, severity: string) => ({
    ...{ alertname: 'FormgateCertificateExpiring', job, certificate: name, severity },
  });
  await fire('certificates', {
    'critical certificate': certificate('forms', 'postgres', 'critical'),
    'its warning': certificate('forms', 'postgres', 'warning'),
    'another certificate': certificate('forms', 'identity-provider', 'warning'),
    'the certificate of another service': certificate('token-handler', 'postgres', 'warning'),
  });
  await expect.poll(() => suppressed('certificates')).toEqual(['its warning']);
});

test('the critical alert of an objective suppresses the warning about the same objective', async () => {
  await fire('objectives', {
    'critical alert': { alertname: 'FormgateFormApiLatency', severity: 'critical' },
    'its warning': { alertname: 'FormgateFormApiLatency', severity: 'warning' },
    'another objective': { alertname: 'FormgateSignInLatency', severity: 'warning' },
  });
  await expect.poll(() => suppressed('objectives')).toEqual(['its warning']);
});

test('a store that is down suppresses the warnings that follow from it, in its own release only', async () => {
  const outbox = { alertname: 'FormgateOutboxStuck', severity: 'warning', kind: 'event' };
  await fire('elsewhere', { 'outbox of another release': outbox });
  await fire('stores', {
    store: { alertname: 'FormgateStoreDown', severity: 'critical', job: 'forms', dependency: 'postgres' },
    outbox,
    'key ring': { alertname: 'FormgateKeyRingOld', severity: 'warning' },
  });
  await expect.poll(() => suppressed('stores')).toEqual(['outbox']);
  expect(await suppressed('elsewhere')).toEqual([]);
});
