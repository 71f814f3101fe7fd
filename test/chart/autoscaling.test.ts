// Tests that upgrades and rollbacks keep the number of pods that autoscaling has chosen. Uses the cluster of
// KUBECONFIG; a quota prevents all pods, so the test needs no image and no node.
import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chart, helms, run } from './helm.ts';

async function succeed(program: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

const autoscaling = { enabled: true, minReplicas: 2, maxReplicas: 10 };
const fixed = { 'forms.replicas': 6 };
const scaled = { ...fixed, 'forms.autoscaling': autoscaling };

describe.each(helms())('%s', { timeout: 300_000 }, (helm) => {
  const namespace = `formgate-autoscaling-${basename(helm)}-${randomBytes(3).toString('hex')}`;
  const kubectl = (...args: string[]) => succeed('kubectl', ['-n', namespace, ...args]);

  /** Returns the operations on a release. All releases have different names, so that each begins without objects. */
  function createRelease(name: string) {
    const deployment = `deployment/${name}-formgate-forms`;
    const release = (...args: string[]) => succeed(helm, ['-n', namespace, ...args]);
    return {
      upgrade: (set: Record<string, unknown>) =>
        release(
          ...['upgrade', '--install', name, chart, '--values', join(chart, 'ci/minimal-values.yaml')],
          ...['--set=crds.install=false', '--set=rbac.create=false'],
          ...Object.entries(set).map(([path, value]) => `--set-json=${path}=${JSON.stringify(value)}`),
        ),
      rollback: (...args: string[]) => release('rollback', name, ...args),
      /** Scales as the HorizontalPodAutoscaler does. */
      scale: (replicas: number) => kubectl('scale', deployment, `--replicas=${replicas}`),
      replicas: async () => Number(await kubectl('get', deployment, '-o', 'jsonpath={.spec.replicas}')),
    };
  }

  beforeAll(async () => {
    if (!process.env.KUBECONFIG) throw new Error('There is no cluster to test with: run npm run test:cluster.');
    await succeed('kubectl', ['create', 'namespace', namespace]);
    await kubectl('create', 'quota', 'no-pods', '--hard=pods=0');
  });
  afterAll(async () => {
    await run('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
  });

  test('enabling autoscaling keeps the pods that run, and later changes keep the pods that it chose', async () => {
    const { upgrade, scale, replicas } = createRelease('running');
    await upgrade(fixed);
    expect(await replicas()).toBe(6);
    await upgrade(scaled);
    expect(await replicas()).toBe(6);
    await scale(8);
    await upgrade({ ...scaled, logLevel: 'debug' });
    expect(await replicas()).toBe(8);
    await scale(7);
    await upgrade(scaled);
    expect(await replicas()).toBe(7);
  });

  test('disabling it again sets the configured number', async () => {
    const { upgrade, replicas } = createRelease('ending');
    await upgrade(fixed);
    await upgrade(scaled);
    await upgrade({ ...fixed, 'forms.replicas': 4 });
    expect(await replicas()).toBe(4);
    await upgrade(scaled);
    expect(await replicas()).toBe(4);
  });

  test('a release that began with autoscaling keeps its pods in an upgrade and in a rollback', async () => {
    const { upgrade, rollback, scale, replicas } = createRelease('new');
    await upgrade(scaled);
    await scale(5);
    await upgrade({ ...scaled, logLevel: 'debug' });
    expect(await replicas()).toBe(5);
    await rollback('1');
    expect(await replicas()).toBe(5);
  });
});
