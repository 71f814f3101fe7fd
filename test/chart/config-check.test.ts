// Tests the Helm hook that checks the configuration before an installation or upgrade: its objects, and the addresses
// that it may connect to.
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { settings as reconciler } from '../../reconciler/config.ts';
import { settings as forms } from '../../src/forms/config.ts';
import { parseCheckArguments } from '../../src/image/config/arguments.ts';
import { settings as platformServer } from '../../src/platform-server/config.ts';
import { type ConfigError, type ProcessSettings, parseConfig } from '../../src/service/operations/config.ts';
import { settings as tokenHandler } from '../../src/token-handler/config.ts';
import { chart, helms, type KubeObject, pick, podTemplates, render, template } from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/checked-values.yaml')];
const name = 'formgate-config-check';
const processes: Record<string, ProcessSettings> = {
  forms,
  'token-handler': tokenHandler,
  'platform-server': platformServer,
  reconciler,
};

let all: KubeObject[];
let hooks: KubeObject[];
beforeAll(async () => {
  all = await render(helm, { files });
  hooks = all.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook']?.includes('pre-upgrade'));
});

const jobPod = (objects: KubeObject[]) => {
  const pod = podTemplates(objects).find(({ of }) => of === `Job ${name}`);
  if (!pod) throw new Error('There is no Job.');
  return pod;
};

test('without checks.enabled, the chart has no such hook', async () => {
  const objects = await render(helm, { files, set: { 'checks.enabled': false } });
  expect(objects.filter(({ metadata }) => metadata.name.includes('config-check'))).toEqual([]);
});

test('the check can have its own variables and mounts', async () => {
  const extraEnv = [{ name: 'ONLY_CHECK', value: 'yes' }];
  const pods = {
    extraEnv,
    extraVolumes: [{ name: 'scratch', emptyDir: {} }],
    extraVolumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
  };
  const { spec } = jobPod(await render(helm, { files, set: { 'checks.pods': pods } }));
  for (const container of spec.containers) {
    expect(container.env).toContainEqual(extraEnv[0]);
    expect(container).toMatchObject({ volumeMounts: expect.arrayContaining(pods.extraVolumeMounts) });
  }
});

test('every object of the check is a hook, and is made before the Job', () => {
  expect(all.filter(({ metadata }) => metadata.name.startsWith(name))).toEqual(hooks);
  expect(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual(
    [
      `ConfigMap ${name}`,
      `Job ${name}`,
      `NetworkPolicy ${name}`,
      `NetworkPolicy ${name}-platform-server`,
      `NetworkPolicy ${name}-postgres`,
      `NetworkPolicy ${name}-redis`,
      `Secret ${name}`,
      `ServiceAccount ${name}`,
    ].sort(),
  );
  for (const { kind, metadata } of hooks)
    expect(metadata.annotations, kind).toMatchObject({
      'helm.sh/hook': 'pre-install,pre-upgrade',
      'helm.sh/hook-weight': kind === 'Job' ? '0' : '-10',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
    });
});

test('the Job refers to no object that only the new release creates', () => {
  const { spec } = jobPod(all);
  const made = new Set(hooks.map((object) => `${object.kind} ${object.metadata.name}`));
  const isOurs = (text: string) => text.startsWith('formgate-');
  const used = [
    `ServiceAccount ${spec.serviceAccountName}`,
    ...(spec.volumes ?? []).flatMap(({ configMap }) => (configMap ? [`ConfigMap ${configMap.name}`] : [])),
    ...spec.containers.flatMap(({ env = [] }) =>
      env.flatMap(({ valueFrom }) => (valueFrom ? [`Secret ${valueFrom.secretKeyRef.name}`] : [])),
    ),
  ];
  expect(used.filter((one) => isOurs(one.split(' ')[1] ?? '') && !made.has(one))).toEqual([]);
  expect(used).toContain('Secret intake');
});

describe('the container of', () => {
  test.each(Object.keys(processes))('%s has the environment of the process, and valid arguments', (component) => {
    const container = jobPod(all).spec.containers.find((one) => one.name === component);
    const own = podTemplates(all).find((pod) => pod.component === component)?.spec.containers[0];
    const namesOf = ({ env = [] }: { env?: { name: string }[] } = {}) => env.map((one) => one.name).sort();
    expect(namesOf(container)).toEqual(namesOf(own));
    const [command, ...args] = container?.args ?? [];
    expect(command).toBe('config');
    expect(parseCheckArguments(args)).toMatchObject({ processes: [component], timeLimit: 30_000 });
  });

  test.each(Object.entries(processes))('%s finds its copies of secrets valid', (component, { schema }) => {
    const { data } = pick<{ data: Record<string, string> }>(hooks, 'Secret', name);
    const container = jobPod(all).spec.containers.find((one) => one.name === component);
    const environment = (container?.env ?? []).map(({ name: variable, value, valueFrom }) => {
      const encoded = valueFrom && data[valueFrom.secretKeyRef.key];
      const isCopy = valueFrom?.secretKeyRef.name === name;
      if (isCopy) expect(encoded, variable).toBeTruthy();
      return [variable, isCopy ? Buffer.from(encoded ?? '', 'base64').toString() : (value ?? 'somebody’s secret')];
    });
    try {
      parseConfig(schema, Object.fromEntries(environment));
    } catch (error) {
      expect((error as ConfigError).problems).toEqual([]);
    }
  });
});

test('a key ring that is not generated yet has no key with the name of an earlier key', () => {
  const { data } = pick<{ data: Record<string, string> }>(hooks, 'Secret', name);
  const ring = Buffer.from(data.TOKEN_HANDLER_KEY_RING ?? '', 'base64').toString();
  expect(ring).toMatch(/^not-generated-yet:/);
});

const skipped = (objects: KubeObject[], component: string) =>
  parseCheckArguments(
    jobPod(objects)
      .spec.containers.find((one) => one.name === component)
      ?.args?.slice(1) ?? [],
  )?.skipped;

test('dependencies that the release itself installs are not checked before they exist', async () => {
  expect(skipped(all, 'forms')).toEqual(['postgres', 'redis', 'directory']);
  const outside = await render(helm, {
    files: [join(chart, 'ci/minimal-values.yaml')],
    set: { 'checks.enabled': true },
  });
  expect(skipped(outside, 'forms')).toEqual([]);
  expect(skipped(outside, 'reconciler')).toEqual(['postgres']);
});

test('an installation that has failed can be repeated, although Helm then calls it an upgrade', async () => {
  const files = [join(chart, 'ci/minimal-values.yaml')];
  const repeated = await render(helm, { files, set: { 'checks.enabled': true }, isUpgrade: true });
  expect(skipped(repeated, 'reconciler')).toEqual(['postgres']);
});

test('its pods may reach the stores and the platform server, and nothing may reach them', () => {
  const { spec } = pick<{ spec: { policyTypes: string[]; ingress?: object } }>(hooks, 'NetworkPolicy', name);
  expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(spec.ingress).toBeUndefined();
  for (const [component, port] of Object.entries({ postgres: 'postgres', redis: 'redis', 'platform-server': 'http' })) {
    const policy = pick<{ spec: unknown }>(hooks, 'NetworkPolicy', `${name}-${component}`);
    expect(policy.spec).toMatchObject({
      podSelector: { matchLabels: { 'app.kubernetes.io/component': component } },
      ingress: [
        {
          ports: [{ protocol: 'TCP', port }],
          from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'config-check' } } }],
        },
      ],
    });
  }
});

test('its pods may reach the mail server only if the release has a platform server', async () => {
  const ports = (objects: KubeObject[]) =>
    pick<{ spec: { egress: { ports: { port: number | string }[] }[] } }>(
      objects,
      'NetworkPolicy',
      name,
    ).spec.egress.map((rule) => rule.ports.map(({ port }) => port));
  expect(ports(all)).toContainEqual([25, 465, 587]);
  const minimal = { files: [join(chart, 'ci/minimal-values.yaml')], set: { 'checks.enabled': true } };
  expect(ports(await render(helm, minimal))).not.toContainEqual([25, 465, 587]);
});

test('volumes of all processes are mounted, and two different ones of the same name are refused', async () => {
  const extended = { files: [join(chart, 'ci/extended-values.yaml')], set: { 'checks.enabled': true } };
  const pod = jobPod(await render(helm, extended));
  expect(pod.spec.volumes?.map((volume) => volume.name)).toEqual(['tmp', 'ca', 'scratch']);
  const other = { 'forms.pods.extraVolumes': [{ name: 'scratch', emptyDir: {} }] };
  const { code, stderr } = await template(helm, { ...extended, set: { ...extended.set, ...other } });
  expect(code).not.toBe(0);
  expect(stderr).toContain('checks.enabled: the processes have different volumes scratch');
});

describe('the sidecars of all processes, such as a proxy of the database', () => {
  const minimal = { files: [join(chart, 'ci/minimal-values.yaml')] };
  const sidecar = (container: string, image = 'proxy:1') => ({ name: container, image });
  const names = async (set: Record<string, unknown>) => {
    const { spec } = jobPod(await render(helm, { ...minimal, set: { 'checks.enabled': true, ...set } }));
    return (spec as { initContainers?: { name: string }[] }).initContainers?.map((one) => one.name);
  };
  const own = { 'forms.pods.sidecars': [sidecar('sql')], 'tokenHandler.pods.sidecars': [sidecar('cache')] };

  test('run next to the check, each once', async () => {
    expect(await names(own)).toEqual(['sql', 'cache']);
    expect(await names({ 'pods.sidecars': [sidecar('sql')] })).toEqual(['sql']);
  });

  test('are replaced by those of the check', async () => {
    expect(await names({ ...own, 'checks.pods.sidecars': [sidecar('both')] })).toEqual(['both']);
    expect(await names({ ...own, 'checks.pods.sidecars': [] })).toBeUndefined();
  });

  test('are refused if two different ones have the same name', async () => {
    const other = { ...own, 'tokenHandler.pods.sidecars': [sidecar('sql', 'proxy:2')] };
    await expect(names(other)).rejects.toThrow('checks.enabled: the processes have different sidecars sql');
    expect(await names({ ...other, 'checks.pods.sidecars': [sidecar('sql')] })).toEqual(['sql']);
  });
});

test('a check that Kubernetes would end before it reports the problem is refused', async () => {
  const times = { 'checks.timeLimitSeconds': 300, 'checks.activeDeadlineSeconds': 359 };
  const { code, stderr } = await template(helm, { files, set: times });
  expect(code).not.toBe(0);
  expect(stderr).toContain('checks.activeDeadlineSeconds: set at least 360, 60 more than timeLimitSeconds');
  await render(helm, { files, set: { ...times, 'checks.activeDeadlineSeconds': 360 } });
  await render(helm, { files, set: { ...times, 'checks.enabled': false } });
});

test('invalid times are refused', async () => {
  const { code, stderr } = await template(helm, { files, set: { 'checks.timeLimitSeconds': 0 } });
  expect(code).not.toBe(0);
  expect(stderr).toContain('timeLimitSeconds');
});
