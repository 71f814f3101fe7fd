// Provides volumes for the bundled stores: from the cluster's default storage class or, if there is none and this
// machine is the cluster's only node, from folders of this machine.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './commands.ts';

export interface Storage {
  /** Values of `bundled.postgres.storage` and `bundled.redis.storage`. */
  values: { enabled: true; size: string; className?: string };
  remove(): Promise<void>;
}

const size = '1Gi';

/** Provides the volumes. `name` is the name of the storage class to create if the cluster has no default. */
export async function provideStorage(name: string): Promise<Storage> {
  const path = 'jsonpath={.items[*].metadata.annotations.storageclass\\.kubernetes\\.io/is-default-class}';
  if ((await run('kubectl', ['get', 'storageclasses', '-o', path])).includes('true'))
    return { values: { enabled: true, size }, remove: () => Promise.resolve() };
  const node = await onlyNode();
  const folder = mkdtempSync(join(tmpdir(), 'formgate-volumes-'));
  const clean = async () => {
    const kinds = 'persistentvolumes,storageclasses';
    await run('kubectl', ['delete', kinds, '-l', `app=${name}`, '--ignore-not-found', '--timeout=60s']);
  };
  const remove = async () => {
    await clean();
    rmSync(folder, { recursive: true, force: true });
  };
  // Remove leftovers of an earlier run.
  await clean();
  const items = [storageClass(name), ...[0, 1].map((index) => folderVolume(name, index, node, folder))];
  await run('kubectl', ['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
  return { values: { enabled: true, size, className: name }, remove };
}

/** Returns the name of the cluster's only node, which must be this machine. */
async function onlyNode(): Promise<string> {
  const path =
    'jsonpath={range .items[*]}{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address}{"\\n"}{end}';
  const nodes = (await run('kubectl', ['get', 'nodes', '-o', path])).trim().split('\n');
  const [name = '', address = ''] = (nodes.length === 1 ? nodes[0] : '')?.split(' ') ?? [];
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map((one) => one.address) ?? []);
  if (own.includes(address)) return name;
  throw new Error('The cluster has no default storage class, and its node is not this machine.');
}

function storageClass(name: string): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, labels: { app: name } },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  };
}

function folderVolume(name: string, index: number, node: string, folder: string): object {
  const path = join(folder, String(index));
  mkdirSync(path);
  const isNode = { key: 'kubernetes.io/hostname', operator: 'In', values: [node] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `${name}-${index}`, labels: { app: name } },
    spec: {
      capacity: { storage: size },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: name,
      // Unlike a hostPath, a local volume gets the pod's fsGroup.
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [isNode] }] } },
    },
  };
}
