// Tests the objects that the chart renders for every values file in charts/formgate/ci, with every installed Helm.
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chart, helms, type KubeObject, podTemplates, render, run, valueSets } from './helm.ts';

const sets = valueSets();

test('there are twelve sets of values', () => {
  expect(sets.length).toBeGreaterThanOrEqual(12);
});

interface Backend {
  service: { name: string; port: { name: string } };
}

describe.each(helms())('%s', (helm) => {
  describe.each(sets.map((file) => [basename(file), file]))('with %s', (_name, file) => {
    let rendered: Promise<KubeObject[]> | undefined;
    const objects = () => {
      rendered ??= render(helm, { files: [file] });
      return rendered;
    };

    test('helm lint --strict finds nothing', async () => {
      const { code, stdout, stderr } = await run(helm, ['lint', '--strict', chart, `--values=${file}`]);
      expect(code, stdout + stderr).toBe(0);
      expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
    });

    test('all objects have different names, and are in the namespace of the release', async () => {
      const all = await objects();
      const names = all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
      const namespaced = all.filter(({ kind }) => kind !== 'CustomResourceDefinition');
      expect(new Set(namespaced.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['forms']));
    });

    test('every pod satisfies the Pod Security level restricted, and has a read-only root file system', async () => {
      for (const { of, spec } of podTemplates(await objects())) {
        expect(spec.securityContext, of).toMatchObject({
          runAsNonRoot: true,
          seccompProfile: { type: 'RuntimeDefault' },
        });
        for (const container of spec.containers)
          expect(container.securityContext, of).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
      }
    });

    test('only the reconciler’s pods have a token for the Kubernetes API', async () => {
      const all = await objects();
      const withToken = podTemplates(all).filter(({ spec }) => spec.automountServiceAccountToken);
      expect(withToken.map(({ component }) => component)).toEqual(
        all.some(({ kind }) => kind === 'CronJob') ? ['reconciler'] : [],
      );
      for (const account of all.filter(({ kind }) => kind === 'ServiceAccount'))
        expect(account.automountServiceAccountToken, account.metadata.name).toBe(false);
    });

    test('every container has resource requests and a memory limit', async () => {
      for (const { of, spec } of podTemplates(await objects()))
        for (const { resources } of spec.containers) {
          expect(resources.requests, of).toMatchObject({ cpu: expect.anything(), memory: expect.anything() });
          expect(resources.limits, of).toMatchObject({ memory: expect.anything() });
        }
    });

    test('no container has the same variable twice', async () => {
      for (const { of, spec } of podTemplates(await objects()))
        for (const { env = [] } of spec.containers) {
          const names = env.map(({ name }) => name);
          expect(new Set(names).size, of).toBe(names.length);
        }
    });

    test('pods refer only to objects that exist', async () => {
      const all = await objects();
      const find = (kind: string, name: string) =>
        all.find((one) => one.kind === kind && one.metadata.name === name) as KubeObject & {
          data?: Record<string, string>;
        };
      // `npm run keycloak:setup` writes the Secret formgate-keycloak, so the chart does not render it.
      const isOurs = (name: string) => /^(formgate|intake-forms)-(?!keycloak$)/.test(name);
      for (const { of, spec } of podTemplates(all)) {
        if (isOurs(spec.serviceAccountName))
          expect(find('ServiceAccount', spec.serviceAccountName), `${of}: ${spec.serviceAccountName}`).toBeDefined();
        for (const { name, configMap, secret, projected } of spec.volumes ?? []) {
          const where = `${of}: volume ${name}`;
          for (const source of projected?.sources ?? [])
            for (const { key } of isOurs(source.secret.name) ? source.secret.items : [])
              expect(find('Secret', source.secret.name)?.data?.[key], `${where}: ${key}`).toBeTruthy();
          if (configMap && isOurs(configMap.name)) expect(find('ConfigMap', configMap.name), where).toBeDefined();
          if (secret && isOurs(secret.secretName)) expect(find('Secret', secret.secretName), where).toBeDefined();
        }
        for (const { env = [] } of spec.containers)
          for (const { name, valueFrom } of env) {
            const reference = valueFrom?.secretKeyRef;
            if (reference && isOurs(reference.name))
              expect(find('Secret', reference.name)?.data?.[reference.key], `${of}: ${name}`).toBeTruthy();
          }
      }
    });

    test('routes lead to ports of services, and services to ports of pods', async () => {
      const all = await objects();
      const services = all.filter(({ kind }) => kind === 'Service');
      const portsOf = (name: string) => {
        const service = services.find(({ metadata }) => metadata.name === name);
        return (service?.spec as { ports: { name: string; port: number; targetPort: string }[] } | undefined)?.ports;
      };
      for (const ingress of all.filter(({ kind }) => kind === 'Ingress')) {
        const { rules } = ingress.spec as { rules: { http: { paths: { backend: Backend }[] } }[] };
        expect(rules.length).toBeGreaterThan(0);
        for (const { backend } of rules.flatMap(({ http }) => http.paths))
          expect(portsOf(backend.service.name)?.map(({ name }) => name)).toContain(backend.service.port.name);
      }
      for (const route of all.filter(({ kind }) => kind === 'HTTPRoute')) {
        const { rules } = route.spec as { rules: { backendRefs: { name: string; port: number }[] }[] };
        for (const { name, port } of rules.flatMap(({ backendRefs }) => backendRefs))
          expect(portsOf(name)?.map((one) => one.port)).toContain(port);
      }
      for (const service of services) {
        const { selector, ports } = service.spec as {
          selector: Record<string, string>;
          ports: { targetPort: string }[];
        };
        const selected = podTemplates(all).filter(({ labels }) =>
          Object.entries(selector).every(([key, value]) => labels[key] === value),
        );
        expect(selected.map(({ of }) => of).length, service.metadata.name).toBe(1);
        const names = selected[0]?.spec.containers.flatMap((one) => one.ports ?? []).map(({ name }) => name);
        expect(names).toEqual(expect.arrayContaining(ports.map(({ targetPort }) => targetPort)));
      }
    });

    test('a rollout removes no pod before another is ready, and a stopping pod has time to finish its requests', async () => {
      const all = await objects();
      for (const deployment of all.filter(({ kind }) => kind === 'Deployment')) {
        const { strategy } = deployment.spec as { strategy: unknown };
        expect(strategy).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
        const [pod] = podTemplates([deployment]);
        const [container] = pod?.spec.containers ?? [];
        const sleep = container?.lifecycle?.preStop.sleep.seconds ?? 0;
        const deadline = container?.env?.find(({ name }) => name === 'DRAIN_DEADLINE')?.value ?? '';
        const seconds = Number(/^PT(\d+)S$/.exec(deadline)?.[1]);
        expect(sleep).toBeGreaterThanOrEqual(1);
        // After its drain, the process has 5 s to close its connections.
        expect(pod?.spec.terminationGracePeriodSeconds).toBeGreaterThan(sleep + seconds + 5);
      }
    });

    test('Deployments with autoscaling have no number of replicas', async () => {
      const all = await objects();
      const scaled = new Set(
        all.filter(({ kind }) => kind === 'HorizontalPodAutoscaler').map((one) => one.metadata.name),
      );
      for (const { metadata, spec } of all.filter(({ kind }) => kind === 'Deployment'))
        expect('replicas' in (spec as object), metadata.name).toBe(!scaled.has(metadata.name));
    });

    test('with NetworkPolicies, all traffic that is not listed is denied', async () => {
      const all = await objects();
      const policies = all.filter(({ kind }) => kind === 'NetworkPolicy');
      if (basename(file) === 'open-network-values.yaml') return void expect(policies).toEqual([]);
      const deny = policies.find(({ metadata }) => metadata.name.endsWith('-default-deny'));
      expect(deny?.spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] });
      expect(deny?.spec).not.toHaveProperty('ingress');
      expect(deny?.spec).not.toHaveProperty('egress');
      const { podSelector } = (deny?.spec ?? {}) as { podSelector?: { matchLabels: Record<string, string> } };
      const { matchLabels } = podSelector ?? { matchLabels: { none: 'none' } };
      for (const { of, labels } of podTemplates(all)) expect(labels, of).toMatchObject(matchLabels);
    });
  });
});
