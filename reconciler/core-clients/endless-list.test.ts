// Tests that an API server whose list of resources never ends cannot keep a run busy. The API server is scripted.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { answerJson, startFaultServer } from '../../test/support/fault-server.ts';
import { findCluster } from './cluster.ts';

it('a run reports a failure if the API server repeats the position in the list of resources', async () => {
  const server = await startFaultServer(answerJson({ metadata: { continue: 'again' }, items: [] }));
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  const kubeconfig = join(folder, 'config');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'test', cluster: { server: server.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'test', user: {} }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      'current-context': 'test',
    }),
  );
  const cluster = await findCluster({ env: { KUBECONFIG: kubeconfig }, timeout: 2_000 });
  onTestFinished(async () => {
    await cluster?.close();
    await server.close();
    rmSync(folder, { recursive: true });
  });
  await expect(cluster?.list()).rejects.toThrow(
    'cannot list coreclients.formgate.dev: the list does not end: it repeated a cursor',
  );
  expect(server.requests.length).toBe(2);
});
