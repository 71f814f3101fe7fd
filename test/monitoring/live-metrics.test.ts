// Starts everything as `npm start` does, sends real requests, and compares what each process exports with the
// catalogue.
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCatalogue, type MonitoredProcess, monitoredProcesses } from '../../dev/monitoring/catalogue.ts';
import { scrapeTargetsFile } from '../../dev/monitoring/scrape-targets.ts';
import { createFormgate, type Formgate } from '../../dev/start.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { type ExposedMetric, parseMetrics } from './exposed-metrics.ts';
import { runLoad } from './load.ts';

const jobs: Record<MonitoredProcess, string> = {
  'form-service': 'forms',
  'token-handler': 'token-handler',
  'platform-server': 'platform-server',
};

let directory: string;
let redis: TestRedis;
let formgate: Formgate;
const exposed = new Map<MonitoredProcess, { text: string; metrics: Map<string, ExposedMetric> }>();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'formgate-metrics-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  await chmod(directory, 0o755);
  redis = await startTestRedis();
  const options = { port: 0, directory, fresh: false, help: false, urnPrefix: 'urn:example', redisUrl: redis.url };
  formgate = createFormgate(options, { done: () => undefined, warn: () => undefined });
  const { publicUrl } = await formgate.start();
  await runLoad(publicUrl);
  const groups: { targets: string[]; labels: { job: string } }[] = JSON.parse(
    await readFile(join(directory, scrapeTargetsFile), 'utf8'),
  );
  for (const process of monitoredProcesses) {
    const target = groups.find(({ labels }) => labels.job === jobs[process])?.targets[0];
    const text = await (await fetch(`http://${target}/metrics`)).text();
    exposed.set(process, { text, metrics: parseMetrics(text) });
  }
}, 180_000);

afterAll(async () => {
  await formgate?.stop();
  await redis?.close();
  await rm(directory, { recursive: true, force: true });
});

describe.each(monitoredProcesses)('the %s', (process) => {
  const catalogue = new Map(
    createCatalogue().flatMap((entry) => (entry.process === process ? [[entry.name, entry] as const] : [])),
  );

  it('exports exactly the metrics of the catalogue, with their types and meanings', () => {
    const facts = (name: string, { type, help }: { type: string; help: string }) => ({ name, type, help });
    const real = [...(exposed.get(process)?.metrics ?? [])].map(([name, metric]) => facts(name, metric));
    const listed = [...catalogue].map(([name, entry]) => facts(name, entry));
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(real.sort(byName)).toEqual(listed.sort(byName));
  });

  it('labels every sample with exactly the labels of the catalogue', () => {
    let samples = 0;
    for (const [name, { labelSets }] of exposed.get(process)?.metrics ?? []) {
      const entry = catalogue.get(name);
      // The labels of the default metrics differ between versions of Node.js.
      if (!entry || entry.isDefault) continue;
      for (const labels of labelSets) {
        samples += 1;
        expect(labels.sort(), name).toEqual([...entry.labels].sort());
      }
    }
    expect(samples).toBeGreaterThan(100);
  });

  it('names its version', () => {
    expect(exposed.get(process)?.text).toMatch(
      new RegExp(`^formgate_build_info\\{service="${process}",version="\\d+\\.\\d+\\.\\d+",node="[\\d.]+"\\} 1$`, 'm'),
    );
  });
});

it('counts the requests, codes, transitions and cache reads of the load', () => {
  const text = exposed.get('form-service')?.text ?? '';
  for (const outcome of ['sent', 'verified', 'rejected'])
    expect(text).toMatch(new RegExp(`^formgate_codes_total\\{outcome="${outcome}"\\} [1-9]`, 'm'));
  for (const transition of ['created', 'submitted'])
    expect(text).toMatch(new RegExp(`^formgate_form_transitions_total\\{transition="${transition}"\\} [1-9]`, 'm'));
  expect(text).toMatch(/^formgate_cache_reads_total\{cache="configuration",outcome="hit"\} [1-9]/m);
  expect(text).toMatch(/^formgate_dependency_calls_total\{dependency="notifications",outcome="ok"\} [1-9]/m);
  expect(text).toMatch(/^formgate_dependency_calls_total\{dependency="identity-provider",outcome="ok"\} [1-9]/m);
  expect(text).toMatch(/^formgate_dependency_up\{dependency="postgres"\} 1$/m);
  expect(text).toMatch(/^formgate_http_requests_total\{method="POST",route="\/form\/v1\/forms",status="2xx"\} [1-9]/m);
});
