// Tests what install, upgrade, rollback and uninstall do to the objects of a release, in particular to its keys. Uses
// the cluster of KUBECONFIG; the release has no pods.
import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chart, helms, type KubeObject, run } from './helm.ts';

const definition = 'coreclients.formgate.dev';
const ofRelease = 'app.kubernetes.io/instance=formgate';

/** Values with which no pods run, so that the test needs no image and no node. */
const quiet = {
  'forms.replicas': 0,
  'tokenHandler.replicas': 0,
  'platformServer.replicas': 0,
  'reconciler.suspend': true,
};

async function succeed(program: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

describe.each(helms())('%s', (helm) => {
  // Each run has a new namespace, because the namespace of an earlier run may still be terminating.
  const namespace = `formgate-release-${basename(helm)}-${randomBytes(3).toString('hex')}`;
  const kubectl = (...args: string[]) => succeed('kubectl', ['-n', namespace, ...args]);
  const release = (...args: string[]) => succeed(helm, ['-n', namespace, ...args]);
  const upgrade = (set: Record<string, unknown> = {}) =>
    release(
      ...['upgrade', '--install', 'formgate', chart, '--values', join(chart, 'ci/trial-values.yaml')],
      ...Object.entries({ ...quiet, ...set }).map(([path, value]) => `--set-json=${path}=${JSON.stringify(value)}`),
    );

  const read = async (kind: string, name: string) =>
    JSON.parse(await kubectl('get', kind, name, '-o', 'json')) as KubeObject & { data: Record<string, string> };
  const secrets = async () => {
    const names = ['formgate-keys', 'formgate-postgres', 'formgate-redis'];
    return Object.fromEntries(await Promise.all(names.map(async (name) => [name, (await read('secret', name)).data])));
  };

  const latestRevision = async () => {
    const revisions = JSON.parse(await release('history', 'formgate', '-o', 'json')) as { revision: number }[];
    return Math.max(...revisions.map(({ revision }) => revision));
  };

  /** Returns the version, uid and labels of every object of the release. Changes of the status alone do not count. */
  async function versions(): Promise<Record<string, unknown>> {
    const kinds = 'secret,configmap,service,serviceaccount,deploy,sts,cronjob,pdb,netpol,ingress,role,rolebinding';
    const { items } = JSON.parse(await kubectl('get', kinds, '-l', ofRelease, '-o', 'json')) as { items: KubeObject[] };
    return Object.fromEntries(
      items.map(({ kind, metadata }) => {
        const { generation, resourceVersion, uid, labels } = metadata as typeof metadata & Record<string, unknown>;
        return [`${kind} ${metadata.name}`, { version: generation ?? resourceVersion, uid, labels }];
      }),
    );
  }

  beforeAll(async () => {
    if (!process.env.KUBECONFIG) throw new Error('There is no cluster to test with: run npm run test:cluster.');
    await succeed('kubectl', ['create', 'namespace', namespace]);
    await upgrade();
  });
  afterAll(async () => {
    await run(helm, ['-n', namespace, 'uninstall', 'formgate']);
    await run('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
    await run('kubectl', ['delete', 'crd', definition, '--ignore-not-found']);
  });

  test('a second and a third upgrade with the same values change nothing', async () => {
    await upgrade();
    const before = await versions();
    expect(Object.keys(before).length).toBeGreaterThan(30);
    await upgrade();
    expect(await versions()).toEqual(before);
  });

  test('an upgrade with other values keeps every key and password', async () => {
    const before = await secrets();
    await upgrade({ 'forms.env.CODE_LIFETIME': 'PT5M' });
    expect(await secrets()).toEqual(before);
  });

  test('a key that was rotated in the cluster is kept', async () => {
    const ring = Buffer.from(`k2:${Buffer.alloc(32, 2).toString('base64')}`).toString('base64');
    const patch = JSON.stringify({ data: { TOKEN_HANDLER_KEY_RING: ring } });
    await kubectl('patch', 'secret', 'formgate-keys', '-p', patch);
    await upgrade();
    expect((await secrets())['formgate-keys']?.TOKEN_HANDLER_KEY_RING).toBe(ring);
  });

  test('a key is kept while the values do not need it', async () => {
    const before = await secrets();
    await upgrade({ 'forms.codeKey.value': 'c'.repeat(40) });
    await upgrade();
    expect(await secrets()).toEqual(before);
  });

  test('a rollback restores settings and keeps keys', async () => {
    const revision = await latestRevision();
    const before = await secrets();
    await upgrade({ logLevel: 'debug' });
    const level = async () => JSON.stringify(await read('deployment', 'formgate-forms')).includes('"debug"');
    expect(await level()).toBe(true);
    await release('rollback', 'formgate', String(revision));
    expect(await level()).toBe(false);
    expect(await secrets()).toEqual(before);
  });

  test('a rollback to a revision before a rotation restores the former key, but an upgrade keeps the new one', async () => {
    const revision = await latestRevision();
    const before = await secrets();
    const rotated = Buffer.from('r'.repeat(40)).toString('base64');
    const keys = async () => (await secrets())['formgate-keys'];
    await kubectl('patch', 'secret', 'formgate-keys', '-p', JSON.stringify({ data: { FORMS_CODE_KEY: rotated } }));
    await upgrade();
    expect((await keys())?.FORMS_CODE_KEY).toBe(rotated);
    await upgrade({ 'image.tag': '0.0.1' });
    expect((await keys())?.FORMS_CODE_KEY).toBe(rotated);
    const rollback = ['rollback', 'formgate', String(revision)];
    const { code, stderr } = await run(helm, ['-n', namespace, ...rollback]);
    // Helm 4 refuses to change a field that `kubectl` has changed, unless it is told to.
    if (code !== 0) {
      expect(stderr).toMatch(/conflict .*FORMS_CODE_KEY/s);
      expect((await keys())?.FORMS_CODE_KEY).toBe(rotated);
      await release(...rollback, '--force-conflicts');
    }
    expect(await secrets()).toEqual(before);
  });

  test('uninstall keeps keys and CoreClients, and a new installation uses the keys again', async () => {
    const before = await secrets();
    await release('uninstall', 'formgate');
    expect(await secrets()).toEqual(before);
    expect(await succeed('kubectl', ['get', 'crd', definition, '-o', 'name'])).toContain(definition);
    const left = await kubectl('get', 'deploy,sts,cronjob,svc,netpol,configmap,role', '-l', ofRelease, '-o', 'name');
    expect(left.trim()).toBe('');
    await upgrade();
    expect(await secrets()).toEqual(before);
  });

  test('uninstall removes everything if secrets.keep and crds.keep are off', async () => {
    await upgrade({ 'secrets.keep': false, 'crds.keep': false });
    await release('uninstall', 'formgate');
    expect((await kubectl('get', 'secret', '-l', ofRelease, '-o', 'name')).trim()).toBe('');
    expect((await run('kubectl', ['get', 'crd', definition])).code).not.toBe(0);
  });
});
