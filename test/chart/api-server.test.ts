// Tests that a real API server accepts every rendered object of every set of values, and stores it unchanged. The test
// uses the cluster of KUBECONFIG, and a namespace with the Pod Security level restricted. It creates no pods. The
// cluster needs the custom resource definitions of Traefik, Gateway API and Prometheus Operator.
import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chart, helms, type KubeObject, pick, render, run, valueSets } from './helm.ts';

const namespace = `formgate-dry-run-${randomBytes(3).toString('hex')}`;
const [helm = ''] = helms();

async function kubectl(args: string[], input?: object): Promise<string> {
  const { code, stdout, stderr } = await run('kubectl', args, input && JSON.stringify(input));
  if (code !== 0 || stderr.includes('Warning:')) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

const list = (items: object[]) => ({ apiVersion: 'v1', kind: 'List', items });

beforeAll(async () => {
  if (!process.env.KUBECONFIG) throw new Error('There is no cluster to test with: run npm run test:cluster.');
  const labels = Object.fromEntries(
    ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
  );
  await kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
});
afterAll(async () => {
  await kubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--wait=false']);
});

/**
 * Removes the priority class and the runtime class of a Pod. An API server rejects a Pod if one of them does not exist,
 * but accepts a Deployment that names them.
 */
function onlyItself(object: KubeObject): KubeObject {
  if (object.kind !== 'Pod') return object;
  const { priorityClassName: _priority, runtimeClassName: _runtime, ...spec } = object.spec as Record<string, unknown>;
  return { ...object, spec };
}

/**
 * Returns the object without replicas, so that it creates no pods. Leaves out kinds that would create pods later, and
 * kinds that this test must not create.
 */
function withoutPods(object: KubeObject): KubeObject[] {
  const { kind } = object;
  if (['Pod', 'CronJob', 'HorizontalPodAutoscaler', 'CustomResourceDefinition', 'Secret'].includes(kind)) return [];
  if (kind !== 'Deployment' && kind !== 'StatefulSet') return [object];
  return [{ ...object, spec: { ...(object.spec as object), replicas: 0 } }];
}

const sets = valueSets().map((file) => [basename(file), file] as const);

test.each(sets)('an API server accepts every object of %s', async (_name, file) => {
  const objects = (await render(helm, { files: [file], namespace })).map(onlyItself);
  const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount');
  await kubectl(['-n', namespace, 'apply', '--server-side', '--force-conflicts', '-f', '-'], list(accounts));
  const apply = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-o', 'name', '-f', '-'];
  const taken = await kubectl(['-n', namespace, ...apply], list(objects));
  expect(taken.trim().split('\n')).toHaveLength(objects.length);
});

// An API server may store an object in a different form, for example without an empty list. Every upgrade would then
// change this object.
test.each(sets)('applying the objects of %s a second time changes none', async (_name, file) => {
  const objects = (await render(helm, { files: [file], namespace })).flatMap(withoutPods);
  const apply = async () => {
    const args = ['apply', '--server-side', '--force-conflicts', '-o', 'json', '-f', '-'];
    const { items } = JSON.parse(await kubectl(['-n', namespace, ...args], list(objects))) as { items: KubeObject[] };
    return items.map(({ kind, metadata }) => {
      const { generation, resourceVersion } = metadata as { generation?: number; resourceVersion?: string };
      return [kind, metadata.name, generation ?? resourceVersion];
    });
  };
  const before = await apply();
  expect(before).toHaveLength(objects.length);
  expect(await apply()).toEqual(before);
  const args = ['delete', '--ignore-not-found', '--wait=false', '-f', '-'];
  await kubectl(['-n', namespace, ...args], list(objects));
});

test('with checks, a release is refused while the namespace lacks a Secret, ConfigMap or key that the values name', async () => {
  const set = 'checks.enabled=true,caCertificates.configMap=ca,tokenHandler.keyRing.existingSecret.name=keys';
  const values = `--values=${join(chart, 'ci/minimal-values.yaml')}`;
  const args = [
    'template',
    'formgate',
    chart,
    `--namespace=${namespace}`,
    '--kube-version=1.34.0',
    values,
    '--set',
    set,
  ];
  const problems = async () => {
    const { code, stderr } = await run(helm, [...args, '--dry-run=server']);
    return [code, ...stderr.split('\n').filter((line) => line.startsWith('  - '))];
  };
  const apply = (...items: object[]) => kubectl(['-n', namespace, 'apply', '--server-side', '-f', '-'], list(items));
  const secret = (name: string, stringData: object) => ({
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData },
  });
  const withoutRedis = { DATABASE_URL: 'postgres://a/b', CLIENT_SECRET: 'c' };
  await apply(secret('formgate', withoutRedis));
  expect(await problems()).toEqual([
    1,
    '  - tokenHandler.keyRing.existingSecret: the namespace has no Secret keys',
    '  - redis.url.existingSecret: the Secret formgate has no key REDIS_URL',
    '  - caCertificates: the namespace has no ConfigMap ca',
  ]);
  expect((await run(helm, args)).code).toBe(0);
  await apply(
    secret('formgate', { ...withoutRedis, REDIS_URL: 'redis://a' }),
    secret('keys', { KEY_RING: `k1:${'a'.repeat(43)}=` }),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ca' }, data: { 'ca.crt': 'a' } },
  );
  expect(await problems()).toEqual([0]);
});

test('the namespace rejects a pod that may become root', async () => {
  const objects = await render(helm, { files: [valueSets()[0] ?? ''], namespace });
  type Deployment = { spec: { template: { spec: { securityContext: object } } } };
  const careless = structuredClone(pick<Deployment>(objects, 'Deployment', 'formgate-forms'));
  careless.spec.template.spec.securityContext = {};
  const apply = ['apply', '--server-side', '--dry-run=server', '-f', '-'];
  await expect(kubectl(['-n', namespace, ...apply], careless)).rejects.toThrow('would violate PodSecurity');
});

test('the API server rejects an unknown field', async () => {
  const objects = await render(helm, { files: [valueSets()[0] ?? ''], namespace });
  const service = structuredClone(pick<{ spec: Record<string, unknown> }>(objects, 'Service', 'formgate-forms'));
  service.spec.prots = [];
  const apply = ['apply', '--server-side', '--dry-run=server', '-f', '-'];
  await expect(kubectl(['-n', namespace, ...apply], service)).rejects.toThrow('prots');
});
