// Runs a few lines of JavaScript in a pod, to test the release from within the cluster, and returns their output.
import { randomUUID } from 'node:crypto';
import { imageOf, type World } from './world.ts';

export interface Probe {
  labels?: Record<string, string>;
  /** A CommonJS script that prints JSON. */
  ask: string;
}

/**
 * Runs the script in a pod, and returns the JSON that it printed. Throws if the script does not succeed within a
 * minute.
 */
export async function runProbe(world: World, { labels = {}, ask }: Probe): Promise<unknown> {
  const name = `probe-${randomUUID().slice(0, 8)}`;
  const container = {
    name: 'probe',
    image: imageOf('IMAGE'),
    imagePullPolicy: 'IfNotPresent',
    command: ['/nodejs/bin/node', '-e', ask],
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  };
  const securityContext = { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } };
  await world.apply([
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels },
      spec: { restartPolicy: 'Never', automountServiceAccountToken: false, securityContext, containers: [container] },
    },
  ]);
  try {
    await world.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', `pod/${name}`, '--timeout=90s');
    return JSON.parse(await world.kubectl('logs', name));
  } finally {
    await world.kubectl('delete', 'pod', name, '--wait=false');
  }
}
