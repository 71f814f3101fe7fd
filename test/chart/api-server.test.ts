// Every object of every set of values is one that a real API server takes, and stores as it is written: asked of the
// cluster of KUBECONFIG, in a namespace that admits only what Pod Security calls restricted. No pod is made. Needs the
// definitions of Traefik, Gateway API and Prometheus Operator there.
import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { helms, type KubeObject, pick, render, run, valueSets } from './helm.ts';

const namespace = `formgate-dry-run-${randomBytes(3).toString('hex')}`;
const [helm = ''] = helms();

async function kubectl(args: string[], input?: object): Promise<string> {
  const { code, stdout, stderr } = await run('kubectl', args, input && JSON.stringify(input));
  if (code !== 0 || stderr.includes('Warning:')) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

const list = (items: object[]) => ({ apiVersion: 'v1', kind: 'List', items });

beforeAll(async () => {
  if (!process.env.KUBECONFIG) throw new Error('There is no cluster to ask: run npm run test:cluster.');
  const labels = Object.fromEntries(
    ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
  );
  await kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
});
afterAll(async () => {
  await kubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--wait=false']);
});

/** A pod, unlike what makes pods, is refused where its account or its priority is not there. */
function onlyItself(object: KubeObject): KubeObject {
  if (object.kind !== 'Pod') return object;
  const { priorityClassName: _priority, ...spec } = object.spec as Record<string, unknown>;
  return { ...object, spec };
}

/** What can be made for real without a pod or a namespace coming of it. */
function withoutPods(object: KubeObject): KubeObject[] {
  const { kind } = object;
  if (['Pod', 'CronJob', 'HorizontalPodAutoscaler', 'CustomResourceDefinition', 'Secret'].includes(kind)) return [];
  if (kind !== 'Deployment' && kind !== 'StatefulSet') return [object];
  return [{ ...object, spec: { ...(object.spec as object), replicas: 0 } }];
}

const sets = valueSets().map((file) => [basename(file), file] as const);

test.each(sets)('every object of %s is taken', async (_name, file) => {
  const objects = (await render(helm, { files: [file], namespace })).map(onlyItself);
  const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount');
  await kubectl(['-n', namespace, 'apply', '--server-side', '--force-conflicts', '-f', '-'], list(accounts));
  const apply = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-o', 'name', '-f', '-'];
  const taken = await kubectl(['-n', namespace, ...apply], list(objects));
  expect(taken.trim().split('\n')).toHaveLength(objects.length);
});

// An empty list that is stored as none, for one, would be a change at every upgrade.
test.each(sets)('every object of %s is stored as it is written: a second time changes none', async (_name, file) => {
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

test('a pod that may become root is refused there, so that the namespace proves something', async () => {
  const objects = await render(helm, { files: [valueSets()[0] ?? ''], namespace });
  type Deployment = { spec: { template: { spec: { securityContext: object } } } };
  const careless = structuredClone(pick<Deployment>(objects, 'Deployment', 'formgate-forms'));
  careless.spec.template.spec.securityContext = {};
  const apply = ['apply', '--server-side', '--dry-run=server', '-f', '-'];
  await expect(kubectl(['-n', namespace, ...apply], careless)).rejects.toThrow('would violate PodSecurity');
});

test('a field that Kubernetes does not know is refused there', async () => {
  const objects = await render(helm, { files: [valueSets()[0] ?? ''], namespace });
  const service = structuredClone(pick<{ spec: Record<string, unknown> }>(objects, 'Service', 'formgate-forms'));
  service.spec.prots = [];
  const apply = ['apply', '--server-side', '--dry-run=server', '-f', '-'];
  await expect(kubectl(['-n', namespace, ...apply], service)).rejects.toThrow('prots');
});
