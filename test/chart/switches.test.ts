// Tests the effects of single values on the rendered objects, and which values the chart rejects.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseTrustedProxies } from '../../src/service/http/client-address.ts';
import {
  chart,
  helms,
  type KubeObject,
  pick,
  podTemplates,
  type Rendering,
  render,
  template,
  valueSets,
} from './helm.ts';

const [helm = ''] = helms();
const files = [join(chart, 'ci/minimal-values.yaml')];
const rendered = (set: Record<string, unknown> = {}) => render(helm, { files, set });
/** Pod labels that the chart needs with a Gateway, or with an ingress controller without a preset. */
const admitted = { 'networkPolicy.ingressController.podLabels': { 'app.kubernetes.io/name': 'envoy' } };
/** Replaces the external stores of the minimal values with the bundled ones. */
const bundled = {
  'bundled.enabled': true,
  'redis.url.existingSecret.name': '',
  'forms.database.existingSecret.name': '',
  'tokenHandler.database.existingSecret.name': '',
};
const kinds = (objects: KubeObject[]) => new Set(objects.map(({ kind }) => kind));

async function variable(component: string, name: string, options: Rendering): Promise<string | undefined> {
  const pods = podTemplates(await render(helm, options));
  const pod = pods.find((one) => one.component === component);
  return pod?.spec.containers[0]?.env?.find((one) => one.name === name)?.value;
}

describe('by default, the chart leaves out', () => {
  test.each([
    ['Ingress', { 'ingress.enabled': true, ...admitted }],
    ['HTTPRoute', { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }], ...admitted }],
    ['ServiceMonitor', { 'serviceMonitor.enabled': true }],
    ['PrometheusRule', { 'prometheusRule.enabled': true, 'serviceMonitor.enabled': true }],
    ['HorizontalPodAutoscaler', { 'forms.autoscaling.enabled': true }],
    ['StatefulSet', bundled],
  ])('%s', async (kind, set) => {
    expect(kinds(await rendered())).not.toContain(kind);
    expect(kinds(await rendered(set))).toContain(kind);
  });
});

test('the labels of the chart win over common labels, because selectors use them', async () => {
  const own = { 'app.kubernetes.io/name': 'permits', 'app.kubernetes.io/part-of': 'permits', team: 'forms' };
  // The definition of CoreClient belongs to the cluster, not to a release.
  const objects = (await rendered({ commonLabels: own })).filter(({ kind }) => kind !== 'CustomResourceDefinition');
  const labels = objects.map(({ metadata }) => (metadata as { labels?: Record<string, string> }).labels ?? {});
  for (const each of labels)
    expect(each).toMatchObject({
      'app.kubernetes.io/name': 'formgate',
      'app.kubernetes.io/part-of': 'formgate',
      team: 'forms',
    });
  const { spec } = pick<{ spec: { jobTemplate: KubeObject } }>(objects, 'CronJob');
  expect(spec.jobTemplate.metadata.labels).toMatchObject({ 'app.kubernetes.io/name': 'formgate', team: 'forms' });
});

test('a label that several values set, or that the chart sets, is written once into each object', async () => {
  const own = { team: 'monitoring', 'app.kubernetes.io/component': 'own', 'app.kubernetes.io/name': 'own' };
  const monitoring = ['serviceMonitor', 'prometheusRule', 'dashboards'].flatMap((part) => [
    [`${part}.enabled`, true],
    [`${part}.labels`, own],
  ]);
  const commonLabels = { ...own, team: 'forms', cost: 'one' };
  // The rendering fails if a key is repeated.
  const objects = await rendered({ commonLabels, ...Object.fromEntries(monitoring) });
  const labelsOf = (kind: string, name: string) => pick(objects, kind, name).metadata.labels;
  const chosen = { cost: 'one', team: 'monitoring', 'app.kubernetes.io/name': 'formgate' };
  const metrics = { ...chosen, 'app.kubernetes.io/component': 'metrics' };
  expect(labelsOf('ServiceMonitor', 'formgate')).toMatchObject(metrics);
  expect(labelsOf('PrometheusRule', 'formgate')).toMatchObject(metrics);
  const dashboard = labelsOf('ConfigMap', 'formgate-dashboard-overview');
  expect(dashboard).toMatchObject({ ...chosen, 'app.kubernetes.io/component': 'dashboards' });
  expect(labelsOf('Service', 'formgate-forms')).toMatchObject({
    ...{ cost: 'one', team: 'forms', 'app.kubernetes.io/component': 'forms' },
  });
});

describe('common annotations', () => {
  const common = { 'example.org/wave': '1' };
  const wavesOf = (objects: KubeObject[]) =>
    objects
      // The definition of CoreClient belongs to the cluster, not to a release, and further objects to the operator.
      .filter(({ kind, metadata }) => kind !== 'CustomResourceDefinition' && metadata.labels !== undefined)
      .map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.annotations?.['example.org/wave']}`);

  test.each(valueSets())('are on every object of %s', async (file) => {
    const waves = wavesOf(await render(helm, { files: [file], set: { commonAnnotations: common } }));
    expect(waves.filter((wave) => !wave.endsWith(' 1'))).toEqual([]);
  });

  test('change no pods of workloads', async () => {
    for (const { of, annotations } of podTemplates(await rendered({ commonAnnotations: common })))
      expect([of, annotations['example.org/wave']]).toEqual([of, of.startsWith('Pod ') ? '1' : undefined]);
  });

  test('yield to more specific annotations', async () => {
    const set = {
      commonAnnotations: { ...common, 'helm.sh/resource-policy': 'delete', 'helm.sh/hook-delete-policy': 'none' },
    };
    const own = { 'service.annotations': { 'example.org/wave': '2' }, 'pods.annotations': { 'example.org/wave': '' } };
    const objects = await rendered({ ...set, ...own });
    const annotationsOf = (kind: string, name: string) => pick(objects, kind, name).metadata.annotations;
    expect(annotationsOf('Service', 'formgate-forms')?.['example.org/wave']).toBe('2');
    expect(annotationsOf('Secret', 'formgate-keys')?.['helm.sh/resource-policy']).toBe('keep');
    expect(annotationsOf('Pod', 'formgate-test')).toMatchObject({
      'helm.sh/hook-delete-policy': 'before-hook-creation',
      'example.org/wave': '',
    });
  });
});

describe('the certificates of the Ingresses', () => {
  const hosts = ['a.example.org', 'b.example.org', 'c.example.net'];
  const tlsOf = async (tls: object, names = hosts) => {
    const set = {
      'ingress.enabled': true,
      'ingress.hosts': names,
      'ingress.tls': { enabled: true, ...tls },
      ...admitted,
    };
    const ingresses = (await rendered(set)).filter(({ kind }) => kind === 'Ingress');
    const [first, ...others] = ingresses.map(({ spec }) => (spec as { tls: object[] }).tls);
    for (const other of others) expect(other).toEqual(first);
    return first;
  };
  const own = { hosts: ['a.example.org'], secretName: 'a' };
  const wildcard = { hosts: ['*.example.org'], secretName: 'org' };

  test('are one for all hosts by default', async () => {
    expect(await tlsOf({})).toEqual([{ hosts }]);
    expect(await tlsOf({ secretName: 'shared' })).toEqual([{ hosts, secretName: 'shared' }]);
    expect(await tlsOf({ secretName: 'shared' }, [])).toEqual([{ secretName: 'shared' }]);
  });

  test('can be separate for some hosts', async () => {
    const others = { hosts: hosts.slice(1), secretName: 'shared' };
    expect(await tlsOf({ secretName: 'shared', certificates: [own] })).toEqual([own, others]);
    const net = { hosts: ['c.example.net'] };
    expect(await tlsOf({ certificates: [wildcard] })).toEqual([wildcard, net]);
    expect(await tlsOf({ certificates: [wildcard, { ...net, secretName: 'net' }] })).toHaveLength(2);
    expect(await tlsOf({ certificates: [own] }, [])).toEqual([own]);
    const shared = { secretName: 'shared' };
    expect(await tlsOf({ ...shared, certificates: [own] }, [])).toEqual([own, shared]);
    expect(await tlsOf({ certificates: null })).toEqual([{ hosts }]);
  });
});

test('no ingress controller may call the services while nothing says that there is one', async () => {
  const traefik = async (set: Record<string, unknown>) =>
    JSON.stringify((await rendered(set)).filter(({ kind }) => kind === 'NetworkPolicy')).includes('traefik');
  expect(await traefik({})).toBe(false);
  expect(await traefik({ 'ingress.enabled': true, 'ingress.preset': 'traefik' })).toBe(true);
});

test('only the listed peers may call the services if nothing names the ingress controller or Gateway', async () => {
  const haproxy = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'haproxy' } } };
  const from = { 'networkPolicy.from': [haproxy] };
  const route = { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }] };
  for (const set of [{ 'ingress.enabled': true }, route]) {
    const policy = pick<{ spec: { ingress: { from: object[] }[] } }>(
      await rendered({ ...set, ...from }),
      'NetworkPolicy',
      'formgate-forms',
    );
    const outside = policy.spec.ingress[0]?.from.filter((peer) => 'namespaceSelector' in peer);
    expect(outside).toEqual([haproxy]);
  }
});

describe('by default, the chart contains', () => {
  test.each([
    ['NetworkPolicy', { 'networkPolicy.enabled': false }],
    ['CronJob', { 'reconciler.enabled': false }],
    ['Role', { 'reconciler.enabled': false }],
    [
      'PodDisruptionBudget',
      { 'forms.podDisruptionBudget.enabled': false, 'tokenHandler.podDisruptionBudget.enabled': false },
    ],
    ['Pod', { 'tests.enabled': false }],
  ])('%s', async (kind, set) => {
    expect(kinds(await rendered())).toContain(kind);
    expect(kinds(await rendered(set))).not.toContain(kind);
  });
});

describe('the console', () => {
  const policyOf = (objects: KubeObject[]) =>
    JSON.stringify(
      objects.find(({ kind, metadata }) => kind === 'NetworkPolicy' && /token-handler$/.test(metadata.name)),
    );
  const peer = '"app.kubernetes.io/component":"token-handler"';
  const peersIn = (text: string) => text.split(peer).length - 1;

  test('has its URL in the token handler and the reconciler, and its pods may call each other', async () => {
    const set = { 'tokenHandler.consoleUrl': 'https://forms.example.org' };
    for (const component of ['token-handler', 'reconciler']) {
      expect(await variable(component, 'CONSOLE_URL', { files, set })).toBe('https://forms.example.org');
      expect(await variable(component, 'CONSOLE_URL', { files })).toBeUndefined();
    }
    const [without, withConsole] = [policyOf(await rendered()), policyOf(await rendered(set))];
    expect(peersIn(withConsole) - peersIn(without)).toBe(2);
  });
});

describe('the image', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  const repository = 'registry.example.org/formgate';
  test.each([
    ['by tag', { tag: '1.2.3' }, `${repository}:1.2.3`],
    ['by digest', { digest }, `${repository}@${digest}`],
    ['by both', { tag: '1.2.3', digest }, `${repository}:1.2.3@${digest}`],
    ['of the chart’s version, without either', {}, expect.stringMatching(/^registry\.example\.org\/formgate:\d/)],
  ])('is named %s', async (_how, image, expected) => {
    const set = Object.fromEntries(
      Object.entries({ repository, ...image }).map(([key, value]) => [`image.${key}`, value]),
    );
    const pods = podTemplates(await rendered(set));
    expect(pods.find(({ component }) => component === 'forms')?.spec.containers[0]?.image).toEqual(expected);
  });
});

describe('the session cookie', () => {
  const cookie = (set: Record<string, unknown>) =>
    variable('token-handler', 'SESSION_COOKIE', { files, set: { ...admitted, ...set } });

  test('is a __Host- cookie if TLS is enabled for the Ingress or the HTTPRoute', async () => {
    expect(await cookie({})).toBe('formgate_session');
    expect(await cookie({ 'ingress.enabled': true })).toBe('formgate_session');
    expect(await cookie({ 'ingress.enabled': true, 'ingress.tls.enabled': true })).toBe('__Host-formgate_session');
    const route = { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }], 'httpRoute.tls': true };
    expect(await cookie(route)).toBe('__Host-formgate_session');
  });

  test('has the configured name, with and without TLS', async () => {
    const set = { 'ingress.enabled': true, 'ingress.tls.enabled': true, 'tokenHandler.sessionCookie': 'site' };
    expect(await cookie(set)).toBe('site');
  });
});

/** Rewrites a path as an ingress controller does, with a regular expression in the controller's syntax. */
function rewrite(pattern: string, replacement: string, path: string): string {
  return path.replace(new RegExp(pattern), replacement);
}

/**
 * Pairs of the path that the browser requests and the path that the token handler gets. The gateway of `npm start`
 * rewrites paths in the same way.
 */
const rewrites = [
  ['/token-handler/sessions', '/token-handler/v1/sessions'],
  ['/token-handler/clients/a b/auth', '/token-handler/v1/clients/a b/auth'],
  ['/token-handler/v1/sessions', '/token-handler/v1/sessions'],
  ['/token-handler/v1', '/token-handler/v1/?'],
  ['/token-handler/v1x/y', '/token-handler/v1/v1x/y'],
  ['/token-handler', '/token-handler/v1/?'],
  ['/token-handler/', '/token-handler/v1/'],
] as const;

describe('the rewrite of /token-handler', () => {
  const ingress = (preset: string, more: Record<string, unknown> = {}) =>
    rendered({
      ...{ 'ingress.enabled': true, 'ingress.preset': preset, 'ingress.hosts': ['a.example.org'] },
      ...{ ...admitted, ...more },
    });
  const annotationsOf = (objects: KubeObject[], name: string) =>
    pick(objects, 'Ingress', name).metadata.annotations ?? {};
  const pathsOf = (objects: KubeObject[], name: string) => {
    const { spec } = pick<{ spec: { rules: { http: { paths: { path: string; pathType: string }[] } }[] } }>(
      objects,
      'Ingress',
      name,
    );
    return spec.rules.flatMap(({ http }) => http.paths.map(({ path, pathType }) => `${pathType} ${path}`));
  };

  test('with preset traefik is a Middleware that leaves versioned paths as they are', async () => {
    const objects = await ingress('traefik', { 'ingress.rewrite': true });
    const { regex, replacement } = pick<{ spec: { replacePathRegex: { regex: string; replacement: string } } }>(
      objects,
      'Middleware',
    ).spec.replacePathRegex;
    for (const [path, expected] of rewrites)
      expect(rewrite(regex, replacement, path), path).toMatch(new RegExp(`^${expected}$`));
    const middleware = 'forms-formgate-token-handler@kubernetescrd';
    expect(annotationsOf(objects, 'formgate-token-handler')).toEqual({
      'traefik.ingress.kubernetes.io/router.middlewares': middleware,
    });
    expect(annotationsOf(objects, 'formgate-forms')).toEqual({});
    expect(pathsOf(objects, 'formgate-token-handler')).toEqual(['Prefix /token-handler']);
    expect(pathsOf(objects, 'formgate-forms')).toEqual(['Prefix /form/v1']);
  });

  test('with preset nginx is an annotation that leaves versioned paths as they are', async () => {
    const objects = await ingress('nginx', { 'ingress.rewrite': true });
    const annotations = annotationsOf(objects, 'formgate-token-handler');
    const [path = ''] = pathsOf(objects, 'formgate-token-handler');
    const pattern = path.replace('ImplementationSpecific ', '^');
    const replacement = annotations['nginx.ingress.kubernetes.io/rewrite-target'] ?? '';
    for (const [path, expected] of rewrites)
      expect(rewrite(pattern, replacement, path), path).toMatch(new RegExp(`^${expected}$`));
    expect(annotations['nginx.ingress.kubernetes.io/use-regex']).toBe('true');
    expect(annotations['nginx.ingress.kubernetes.io/proxy-buffering']).toBe('off');
    expect(annotationsOf(objects, 'formgate-forms')).toEqual({
      'nginx.ingress.kubernetes.io/proxy-body-size': '0',
      'nginx.ingress.kubernetes.io/proxy-request-buffering': 'off',
    });
    expect(kinds(objects)).not.toContain('Middleware');
  });

  test('with preset none has neither an annotation nor a rewrite', async () => {
    const objects = await ingress('none', { 'ingress.rewrite': true });
    expect(annotationsOf(objects, 'formgate-token-handler')).toEqual({});
    expect(pathsOf(objects, 'formgate-token-handler')).toEqual(['Prefix /token-handler']);
  });

  test.each(['traefik', 'nginx'])('is off by default with preset %s', async (preset) => {
    const objects = await ingress(preset);
    expect(kinds(objects)).not.toContain('Middleware');
    expect(pathsOf(objects, 'formgate-token-handler')).toEqual(['Prefix /token-handler']);
    expect(JSON.stringify(annotationsOf(objects, 'formgate-token-handler'))).not.toMatch(/rewrite|regex/);
  });

  test('uses the operator’s annotations in preference to those of the preset', async () => {
    const objects = await ingress('nginx', {
      'ingress.annotations': { 'nginx.ingress.kubernetes.io/proxy-body-size': '8m' },
      'ingress.tokenHandlerAnnotations': { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '600' },
    });
    expect(annotationsOf(objects, 'formgate-forms')['nginx.ingress.kubernetes.io/proxy-body-size']).toBe('8m');
    expect(annotationsOf(objects, 'formgate-token-handler')).toMatchObject({
      'nginx.ingress.kubernetes.io/proxy-body-size': '8m',
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '600',
    });
  });

  test('of an HTTPRoute is a filter for unversioned paths only', async () => {
    const route = { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }], ...admitted };
    const filters = async (set: Record<string, unknown>) => {
      type Rule = { matches: { path: { value: string } }[]; filters?: { urlRewrite: { path: unknown } }[] };
      const { spec } = pick<{ spec: { rules: Rule[] } }>(await rendered({ ...route, ...set }), 'HTTPRoute');
      return spec.rules.flatMap((rule) =>
        rule.matches.map(({ path }) => [path.value, rule.filters?.[0]?.urlRewrite.path ?? null]),
      );
    };
    const replaced = { type: 'ReplacePrefixMatch', replacePrefixMatch: '/token-handler/v1' };
    expect(await filters({ 'httpRoute.rewrite': true })).toEqual([
      ['/form/v1', null],
      ['/token-handler/v1', null],
      ['/token-handler', replaced],
    ]);
    expect(await filters({})).toContainEqual(['/token-handler', null]);
  });
});

describe('secrets', () => {
  type Secret = { data: Record<string, string>; metadata: { annotations?: Record<string, string> } };
  const text = (value = '') => Buffer.from(value, 'base64').toString();
  const applySecret = { 'forms.apply.secret.existingSecret.name': 'apply' };
  const keyRing = /^k[a-z0-9]{8}:[A-Za-z0-9+/]{43}=$/;

  test('are generated if none is given, and survive an uninstallation', async () => {
    const { data, metadata } = pick<Secret>(await rendered(), 'Secret', 'formgate-keys');
    expect(Object.keys(data).sort()).toEqual(['FORMS_CODE_KEY', 'TOKEN_HANDLER_KEY_RING']);
    expect(text(data.FORMS_CODE_KEY)).toMatch(/^[A-Za-z0-9]{48}$/);
    expect(text(data.TOKEN_HANDLER_KEY_RING)).toMatch(keyRing);
    expect(metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    const kept = pick<Secret>(await rendered({ 'secrets.keep': false }), 'Secret', 'formgate-keys');
    expect(kept.metadata.annotations).toBeUndefined();
  });

  test('that are generated again have keys of other names, so that nothing takes a new key for a lost one', async () => {
    const names = async () => {
      const { data } = pick<Secret>(
        await rendered({ 'forms.apply.enabled': true, ...applySecret }),
        'Secret',
        'formgate-keys',
      );
      return [data.TOKEN_HANDLER_KEY_RING, data.FORMS_APPLY_KEY_RING].map((ring) => text(ring).split(':')[0]);
    };
    expect(new Set([...(await names()), ...(await names())]).size).toBe(4);
  });

  test('of the intake application exist only if it is enabled, and its account needs one', async () => {
    await expect(rendered({ 'forms.apply.enabled': true })).rejects.toThrow(/forms\.apply\.secret/);
    const objects = await rendered({ 'forms.apply.enabled': true, ...applySecret });
    const { data } = pick<Secret>(objects, 'Secret', 'formgate-keys');
    expect(text(data.FORMS_APPLY_KEY_RING)).toMatch(keyRing);
    const forms = JSON.stringify(podTemplates(objects).find(({ component }) => component === 'forms'));
    expect(forms).toContain('APPLY_CLIENT_ID');
    expect(JSON.stringify(podTemplates(await rendered()))).not.toContain('APPLY_');
  });

  test('that are given in clear are stored in a Secret only, and a change of one replaces the pods', async () => {
    const set = { 'forms.codeKey.value': 'c'.repeat(40) };
    const objects = await rendered(set);
    expect(text(pick<Secret>(objects, 'Secret', 'formgate-given').data.FORMS_CODE_KEY)).toBe('c'.repeat(40));
    expect(Object.keys(pick<Secret>(objects, 'Secret', 'formgate-keys').data)).toEqual(['TOKEN_HANDLER_KEY_RING']);
    expect(JSON.stringify(podTemplates(objects))).not.toContain('cccc');
    const checksum = async (value: string) =>
      podTemplates(await rendered({ 'forms.codeKey.value': value })).find(({ component }) => component === 'forms')
        ?.annotations['checksum/given'];
    expect(await checksum('d'.repeat(40))).not.toBe(await checksum('e'.repeat(40)));
  });

  test('of the bundled Postgres give each service access to its own database only', async () => {
    const { data } = pick<Secret>(await rendered(bundled), 'Secret', 'formgate-postgres');
    expect(text(data.FORMS_DATABASE_URL)).toMatch(
      /^postgres:\/\/forms:[A-Za-z0-9]{32}@formgate-postgres\.forms\.svc:5432\/forms$/,
    );
    expect(text(data['forms-password'])).toBe(new URL(text(data.FORMS_DATABASE_URL)).password);
    const passwords = ['forms', 'token_handler', 'platform_server'].map((role) => data[`${role}-password`]);
    expect(new Set(passwords).size).toBe(3);
  });
});

test('pods can have any labels, except for those that select them', async () => {
  const labels = { 'app.kubernetes.io/component': 'other', 'example.org/team': 'forms' };
  const objects = await rendered({ 'pods.labels': labels, 'forms.pods': { priorityClassName: 'high' } });
  const pods = podTemplates(objects);
  expect(new Set(pods.map(({ component }) => component))).toContain('forms');
  expect(pods.map((pod) => pod.component)).not.toContain('other');
  for (const pod of pods) expect(pod.labels['example.org/team'], pod.of).toBe('forms');
  const priorities = pods.map(({ component, spec }) => [component, spec.priorityClassName]);
  expect(priorities.filter(([, priority]) => priority !== undefined)).toEqual([['forms', 'high']]);
});

test('if user, group and fsGroup are null, the cluster chooses them', async () => {
  const objects = await render(helm, { files: [join(chart, 'ci/named-values.yaml')] });
  for (const { of, spec } of podTemplates(objects))
    expect(spec.securityContext, of).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
});

test('the seed of the platform server contains the addresses of the services', async () => {
  const objects = await render(helm, { files: [join(chart, 'ci/trial-values.yaml')] });
  const { data } = pick<{ data: Record<string, string> }>(objects, 'ConfigMap', 'formgate-platform-server');
  const seed = JSON.parse(data['seed.json'] ?? '');
  expect(seed.tenants).toEqual([
    { id: '65f0c2a9e4b0a1d2c3f4a5b6', name: 'Demo', realm: 'demo', adminEmail: 'admin@example.org' },
  ]);
  const url = (service: string) =>
    seed.directory.find((entry: { service: string; url: string }) => entry.service === service)?.url;
  expect(url('form-service:v1')).toBe('http://formgate-forms.forms.svc:8080/form/v1');
  expect(url('configuration-service')).toBe('http://formgate-platform-server.forms.svc:8080');
  expect(url('file-service')).toBe('http://files:8080');
});

describe('what operators add', () => {
  const added = { files: [join(chart, 'ci/extended-values.yaml')] };

  test('variables, volumes, sidecars and hosts are in the pods of every process', async () => {
    const pods = podTemplates(await render(helm, added)).filter(({ component }) =>
      ['forms', 'token-handler', 'reconciler'].includes(component),
    );
    expect(pods).toHaveLength(3);
    for (const { of, spec } of pods) {
      expect(spec, of).toMatchObject({
        hostAliases: [{ ip: '192.0.2.10' }],
        initContainers: [{ name: 'proxy', restartPolicy: 'Always' }],
        volumes: expect.arrayContaining([expect.objectContaining({ name: 'scratch' })]),
      });
      const [container] = spec.containers;
      expect(container?.env?.at(-1), of).toMatchObject({ name: 'PROXY_PASSWORD', valueFrom: expect.anything() });
      expect(container, of).toMatchObject({
        volumeMounts: expect.arrayContaining([{ name: 'scratch', mountPath: '/scratch' }]),
      });
    }
  });

  test('name resolution, runtime class, scheduler and variables from Secrets are in the pods of every process', async () => {
    for (const { of, component, spec } of podTemplates(await render(helm, added))) {
      if (!['forms', 'token-handler', 'reconciler'].includes(component)) continue;
      expect(spec, of).toMatchObject({
        dnsPolicy: 'ClusterFirst',
        dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
        runtimeClassName: 'gvisor',
        schedulerName: 'packing-scheduler',
        containers: [{ envFrom: [{ secretRef: { name: 'tracing', optional: true } }] }],
      });
    }
  });

  test('a further object may contain templates, and may be a text', async () => {
    const objects = await render(helm, added);
    expect(pick(objects, 'ConfigMap', 'formgate-authorities')).toMatchObject({ data: { team: 'forms' } });
    expect(pick(objects, 'ConfigMap', 'formgate-notes')).toMatchObject({ metadata: { namespace: 'forms' } });
  });

  test('autoscaling can use further metrics, and scale at its own speed', async () => {
    const objects = await render(helm, { files: [join(chart, 'ci/autoscaling-values.yaml')] });
    expect(pick(objects, 'HorizontalPodAutoscaler', 'formgate-token-handler')).toMatchObject({
      spec: {
        metrics: [{ resource: { name: 'cpu' } }, { resource: { name: 'memory' } }],
        behavior: { scaleDown: { stabilizationWindowSeconds: 600 } },
      },
    });
    expect(pick(objects, 'HorizontalPodAutoscaler', 'formgate-forms').spec).not.toHaveProperty('behavior');
  });

  test('the certificates of authorities may be in a Secret', async () => {
    const objects = await render(helm, { files: [join(chart, 'ci/autoscaling-values.yaml')] });
    const items = [{ key: 'ca.crt', path: 'ca.crt' }];
    for (const { of, spec } of podTemplates(objects))
      expect(spec.volumes, of).toContainEqual({ name: 'ca', secret: { secretName: 'authority-tls', items } });
  });

  test('one process can have its own', async () => {
    const own = { 'forms.pods': { extraEnv: [{ name: 'ONLY_FORMS', value: 'yes' }], sidecars: [] } };
    const names = podTemplates(await render(helm, { ...added, set: own })).map(({ component, spec }) => [
      component,
      spec.containers[0]?.env?.at(-1)?.name,
      'initContainers' in spec,
    ]);
    expect(names).toContainEqual(['forms', 'ONLY_FORMS', false]);
    expect(names).toContainEqual(['token-handler', 'PROXY_PASSWORD', true]);
  });

  test('the pod of helm test has the configured resources, as a ResourceQuota may require', async () => {
    const resources = { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '100m', memory: '128Mi' } };
    const pods = podTemplates(await rendered({ 'tests.resources': resources }));
    expect(pods.find(({ component }) => component === 'test')?.spec.containers[0]?.resources).toEqual(resources);
  });

  test('one process can do without what all others have', async () => {
    const all = {
      'pods.nodeSelector': { pool: 'forms' },
      'pods.tolerations': [{ key: 'pool', operator: 'Exists' }],
      'pods.affinity': { nodeAffinity: {} },
      'pods.priorityClassName': 'high',
      'pods.labels': { team: 'forms' },
    };
    const none = {
      nodeSelector: {},
      tolerations: [],
      affinity: {},
      priorityClassName: '',
      topologySpread: [],
      labels: {},
    };
    const pods = podTemplates(await render(helm, { ...added, set: { ...all, 'forms.pods': none } }));
    const fields = ['nodeSelector', 'tolerations', 'affinity', 'priorityClassName', 'topologySpreadConstraints'];
    const of = (name: string) => {
      const pod = pods.find(({ component }) => component === name);
      return [...fields.filter((field) => field in (pod?.spec ?? {})), pod?.labels?.team];
    };
    expect(of('forms')).toEqual([undefined]);
    expect(of('token-handler')).toEqual([...fields, 'forms']);
  });

  test('the settings of one process are added to the labels that nodes of all processes must have', async () => {
    const set = { 'pods.nodeSelector': { pool: 'forms' }, 'forms.pods': { nodeSelector: { disk: 'ssd' } } };
    const pod = podTemplates(await render(helm, { ...added, set })).find(({ component }) => component === 'forms');
    expect(pod?.spec).toMatchObject({ nodeSelector: { pool: 'forms', disk: 'ssd' } });
  });

  test('Services and the ServiceMonitor have what is configured', async () => {
    const objects = await render(helm, added);
    expect(pick(objects, 'Service', 'formgate-forms')).toMatchObject({
      metadata: { annotations: { 'example.org/team': 'forms' } },
      spec: { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4'], trafficDistribution: 'PreferClose' },
    });
    expect(pick(objects, 'ServiceMonitor')).toMatchObject({
      spec: {
        endpoints: [
          {
            relabelings: [{ targetLabel: 'release' }, { targetLabel: 'cluster' }],
            metricRelabelings: [{ regex: 'pod' }],
          },
        ],
      },
    });
  });

  test('with rbac.create=false the chart needs no right to grant rights, and prints them for somebody who has it', async () => {
    const roles = ['Role', 'RoleBinding'];
    const without = await render(helm, added);
    expect(without.filter(({ kind }) => roles.includes(kind))).toEqual([]);
    const printed = await render(helm, { ...added, set: { 'rbac.create': true }, only: 'reconciler-rbac' });
    expect(printed.map(({ kind }) => kind)).toEqual(roles);
    const [pod] = podTemplates(without).filter(({ component }) => component === 'reconciler');
    expect(printed[1]).toMatchObject({ subjects: [{ name: pod?.spec.serviceAccountName, namespace: 'forms' }] });
  });

  test('a reconciler that reads no CoreClients has no token and no Role, and cannot reach the Kubernetes API', async () => {
    const objects = await rendered({ 'reconciler.env.CORE_CLIENTS': 'off' });
    expect(podTemplates(objects).filter(({ spec }) => spec.automountServiceAccountToken)).toEqual([]);
    for (const kind of ['Role', 'RoleBinding']) expect(kinds(objects)).not.toContain(kind);
    const policies = JSON.stringify(objects.filter(({ kind }) => kind === 'NetworkPolicy'));
    expect(policies).not.toContain('6443');
    expect(JSON.stringify(await rendered())).toContain('6443');
  });

  test('without a ServiceAccount of its own, the reconciler gives the default one no rights', async () => {
    expect(kinds(await rendered({ 'reconciler.serviceAccount.create': false }))).not.toContain('RoleBinding');
    expect(kinds(await rendered({ 'reconciler.serviceAccount': { create: false, name: 'own' } }))).toContain(
      'RoleBinding',
    );
  });
});

describe('traces', () => {
  const endpoint = 'http://collector.monitoring:4318';
  const ports = async (set: Record<string, unknown> = {}) =>
    JSON.stringify((await rendered(set)).filter(({ kind }) => kind === 'NetworkPolicy')).split('4318').length - 1;

  test('need nothing of the pods and the network without a collector', async () => {
    const environment = JSON.stringify(podTemplates(await rendered()));
    expect(environment).not.toContain('OTEL_');
    expect(await ports()).toBe(0);
  });

  test('go to the collector from every process, with headers from a Secret', async () => {
    const set = { 'tracing.endpoint': endpoint, 'tracing.headers.existingSecret.name': 'collector' };
    for (const component of ['forms', 'token-handler', 'reconciler']) {
      expect(await variable(component, 'OTEL_EXPORTER_OTLP_ENDPOINT', { files, set })).toBe(endpoint);
      const pod = podTemplates(await rendered(set)).find((one) => one.component === component);
      expect(pod?.spec.containers[0]?.env).toContainEqual({
        name: 'OTEL_EXPORTER_OTLP_HEADERS',
        valueFrom: { secretKeyRef: { name: 'collector', key: 'OTEL_EXPORTER_OTLP_HEADERS' } },
      });
    }
    expect(await ports(set)).toBe(3);
  });

  test.each([
    [
      'a share without a sampler of shares',
      { 'tracing.endpoint': endpoint, 'tracing.samplerArg': '0.5' },
      'samplerArg',
    ],
    ['headers without a collector', { 'tracing.headers.value': 'a=b' }, 'tracing.endpoint'],
    ['an unknown sampler', { 'tracing.endpoint': endpoint, 'tracing.sampler': 'sometimes' }, 'sampler'],
  ])('are refused with %s', async (_what, set, problem) => {
    await expect(rendered(set)).rejects.toThrow(problem);
  });
});

describe('the trusted proxies', () => {
  test.each(['forms', 'token-handler'])('of %s are one hop by default, the ingress', async (component) => {
    expect(await variable(component, 'TRUSTED_PROXIES', { files })).toBe('1');
  });

  test.each([...['10.0.0.0/33', '10.0.0.0/0', '10.0.0/8', 'fc00::/129', 'fc00::/0', '10.0.0.0/8,', 'proxy', '100']])(
    '%s are refused by the chart and by the processes',
    async (trustedProxies) => {
      expect(parseTrustedProxies(trustedProxies)).toBeUndefined();
      await expect(rendered({ trustedProxies })).rejects.toThrow('trustedProxies');
    },
  );

  test.each([
    ...['0', '12', 'loopback', '10.0.0.0/8', '10.0.0.1, 192.168.0.0/16,uniquelocal', 'fc00::/7,::1', 'FE80::1/128'],
    '::ffff:10.0.0.0/104',
  ])('%s are accepted by both', async (trustedProxies) => {
    expect(parseTrustedProxies(trustedProxies)).toBeDefined();
    expect(await variable('forms', 'TRUSTED_PROXIES', { files, set: { trustedProxies } })).toBe(trustedProxies);
  });
});

test.each(helms())('a setting that is no duration is rejected by its name (%s)', async (program) => {
  const set = (text: string) => ({ files, set: { 'forms.env.CODE_LIFETIME': text } });
  for (const text of ['10m', 'P', 'PT1S1M']) {
    const { code, stderr } = await template(program, set(text));
    expect([text, code, stderr]).toEqual([
      text,
      1,
      expect.stringMatching(/forms[/.]env[/.]CODE_LIFETIME.*does not match/),
    ]);
  }
  for (const text of ['P2W', 'PT1H30M', '']) expect((await template(program, set(text))).code, text).toBe(0);
});

describe('the addresses at which clouds serve credentials', () => {
  const rules = async (set: Record<string, unknown> = {}) => {
    const policies = (await rendered(set)).filter(({ kind }) => kind === 'NetworkPolicy');
    const spec = (one: KubeObject) => one.spec as { egress?: { to?: unknown[]; ports: { port: unknown }[] }[] };
    return policies.flatMap((one) => spec(one).egress ?? []);
  };
  const exceptions = (to: unknown[] | undefined) => JSON.stringify(to ?? []).match(/(?<="except":)\[[^\]]*\]/g) ?? [];
  const leaveOut = (to: unknown[] | undefined) => exceptions(to).length > 0;

  test('are left out of every open destination except the Kubernetes API', async () => {
    const open = (await rules()).filter(({ to }) => to === undefined);
    expect(open.map(({ ports }) => ports.map(({ port }) => port))).toEqual([[443, 6443]]);
    expect((await rules()).filter(({ to }) => leaveOut(to)).length).toBeGreaterThan(4);
    const families = async (set?: Record<string, unknown>) =>
      new Set(JSON.stringify(await rules(set)).match(/[\d.:]+\/0/g));
    expect([await families(), await families({ 'networkPolicy.ipFamilies': ['IPv4'] })]).toEqual([
      new Set(['0.0.0.0/0', '::/0']),
      new Set(['0.0.0.0/0']),
    ]);
  });

  test('are those that docs/operations.md names', async () => {
    const page = readFileSync(join(chart, '../../docs/operations.md'), 'utf8');
    const rows = page.split('| blocked address |')[1]?.split('\n\n')[0] ?? '';
    const named = [...rows.matchAll(/^\| `([\d.a-f:/]+)`/gm)].map(([, address = '']) => address);
    const found = new Set((await rules()).flatMap(({ to }) => exceptions(to)));
    const blocked = [...found].flatMap((list) => JSON.parse(list) as string[]);
    expect(blocked).toEqual([
      ...['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32'],
      ...['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:c1::a9fe:a9fe/128', 'fd00:100::100:200/128'],
      ...['fd00:42::42/128', 'fd00:a9fe:a9fe::1/128'],
    ]);
    expect(named).toEqual(blocked);
  });

  test('can be asked for names, because Azure’s DNS server has the address of its wire server', async () => {
    for (const to of [[], [{ ipBlock: { cidr: '168.63.129.16/32' } }]]) {
      const dns = (await rules({ 'networkPolicy.dns.to': to })).filter(({ ports }) => ports[0]?.port === 53);
      expect(dns.map((rule) => rule.to ?? [])).toEqual([to]);
    }
  });

  test('are not left out of a destination that the operator names, or if they are to be reached', async () => {
    const named = [{ ipBlock: { cidr: '10.0.0.0/8' } }];
    expect((await rules({ 'networkPolicy.egress.access.to': named })).map(({ to }) => to)).toContainEqual(named);
    expect((await rules({ 'networkPolicy.blockMetadata': false })).filter(({ to }) => leaveOut(to))).toEqual([]);
  });
});

test.each(['*/10 * * * *', '0 3 * * *', '15,45 0-6/2 1 JAN-mar Mon-Fri', '@hourly', '59 23 31 12 6'])(
  'the schedule %s is accepted',
  async (schedule) => expect(kinds(await rendered({ 'reconciler.schedule': schedule }))).toContain('CronJob'),
);

describe('blocks of addresses', () => {
  const block = (cidr: string) => ({ files, set: { 'networkPolicy.from': [{ ipBlock: { cidr } }] } });
  test.each([
    '10.0.0.0/8',
    '0.0.0.0/0',
    '255.1.20.199/32',
    '::/0',
    'fd00:10:96::/112',
    '2001:DB8::1/128',
    '1:2:3:4:5:6:7:8/64',
  ])('%s is accepted', async (cidr) => expect(kinds(await render(helm, block(cidr)))).toContain('NetworkPolicy'));
  test.each([
    '10.0.0.300/24',
    '10.0.0.0/33',
    '10.0.0/8',
    '010.0.0.0/8',
    '10.0.0.0',
    'fd00::/129',
    'fd00:/8',
    '1::2::3/64',
  ])('%s is rejected', async (cidr) => expect((await template(helm, block(cidr))).stderr).toContain('cidr'));
});

describe('a Gateway or ingress controller without a preset is accepted', () => {
  const route = { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }] };
  test.each([
    ['with the labels of its pods', admitted],
    ['with the labels of its namespace', { 'networkPolicy.ingressController.namespaceLabels': { a: 'b' } }],
    ['as a peer', { 'networkPolicy.from': [{ namespaceSelector: { matchLabels: { a: 'b' } } }] }],
    ['without NetworkPolicies', { 'networkPolicy.enabled': false }],
  ])('%s', async (_name, set) => {
    expect(kinds(await rendered({ ...route, 'ingress.enabled': true, ...set }))).toContain('HTTPRoute');
  });
});

test('an amount of memory in bytes is compared with its unit', async () => {
  const resources = (requested: unknown, limit: unknown) => ({
    'forms.resources': { requests: { cpu: '100m', memory: requested }, limits: { memory: limit } },
  });
  await rendered(resources('256Mi', 536_870_912));
  await rendered(resources(268_435_456, '512Mi'));
  await expect(rendered(resources(1_073_741_824, '512Mi'))).rejects.toThrow('is above its limit (512Mi)');
});

describe('invalid values', () => {
  const refusal = async (options: Rendering) => {
    const { code, stderr } = await template(helm, options);
    expect(code).not.toBe(0);
    return stderr;
  };

  test('are rejected with all problems together', async () => {
    const words = await refusal({});
    for (const problem of [
      'access.url: set the base URL of the identity provider',
      'directory.url: set the base URL of the directory service, or set platformServer.enabled',
      'forms.database: set value or existingSecret.name, or set bundled.enabled',
      'tokenHandler.account.secret: set value or existingSecret.name',
      'redis: set one of url, sentinels and clusterNodes, or set bundled.enabled',
    ])
      expect(words).toContain(problem);
  });

  test.each([
    [
      'both a value and a Secret',
      { 'forms.codeKey': { value: 'c'.repeat(40), existingSecret: { name: 'a' } } },
      'not both',
    ],
    ['two kinds of Redis', { 'redis.sentinels': ['a:1'] }, 'only one of url, sentinels and clusterNodes'],
    [
      'a directory beside the platform server',
      {
        ...{ 'platformServer.enabled': true, 'platformServer.mailFrom': 'a@example.org' },
        ...{ 'platformServer.smtp.value': 'smtp://mail', 'platformServer.database.value': 'postgres://a/b' },
      },
      'directory.url: platformServer.enabled already provides the directory',
    ],
    ['sessions in the memory of two pods', { 'tokenHandler.env.SESSION_STORE': 'memory' }, 'replicas to 1'],
    ['an HTTPRoute without a Gateway', { 'httpRoute.enabled': true }, 'name at least one Gateway'],
    [
      'a Gateway that the NetworkPolicy would lock out',
      { 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'public' }], 'ingress.preset': 'nginx' },
      'networkPolicy.ingressController: set podLabels or namespaceLabels of the pods of the Gateway',
    ],
    [
      'an ingress controller that the NetworkPolicy would lock out',
      { 'ingress.enabled': true, 'ingress.className': 'haproxy' },
      'networkPolicy.ingressController: set podLabels or namespaceLabels of the pods of the ingress controller',
    ],
    [
      'routes to a platform server that is not enabled',
      { 'ingress.enabled': true, 'ingress.platformServer': true },
      'runs no platform server',
    ],
    [
      'a request above its limit',
      { 'forms.resources': { requests: { cpu: '100m', memory: '1Gi' }, limits: { memory: '512Mi' } } },
      'forms.resources: the request for memory (1Gi) is above its limit (512Mi)',
    ],
    [
      'a request for CPU above its limit',
      { 'reconciler.resources': { requests: { cpu: 1 }, limits: { cpu: '900m', memory: '1Gi' } } },
      'reconciler.resources: the request for cpu (1) is above its limit (900m)',
    ],
    [
      'autoscaling by CPU without a request for CPU',
      { 'forms.autoscaling.enabled': true, 'forms.resources': { requests: { cpu: null } } },
      'forms.resources.requests.cpu: set it',
    ],
    [
      'a scrape that may take longer than the interval',
      { 'serviceMonitor.enabled': true, 'serviceMonitor.interval': '5s' },
      'serviceMonitor.scrapeTimeout: 10s is longer than the interval 5s',
    ],
    [
      'a certificate of Redis that would have no effect',
      {
        'redis.url': { value: '', existingSecret: { name: '' } },
        'redis.sentinels': ['[fd00::1]:26379'],
        'redis.tls.ca': '-----BEGIN CERTIFICATE-----',
      },
      'redis.tls: set enabled',
    ],
    [
      'certificates of authorities from two objects',
      { 'caCertificates.configMap': 'ca', 'caCertificates.secret': 'ca' },
      'caCertificates: set either configMap or secret',
    ],
    ['a volume of the chart', { 'pods.extraVolumes': [{ name: 'tmp', emptyDir: {} }] }, 'the chart has a volume tmp'],
    [
      'a certificate that the chart sets',
      {
        'caCertificates.configMap': 'ca',
        'pods.extraEnv': [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca' }],
      },
      'the chart or forms.env sets NODE_EXTRA_CA_CERTS',
    ],
    ['a name that no Service may have', { fullnameOverride: '1form' }, 'Kubernetes permits no Service named 1form'],
    [
      'a further variable that the chart sets',
      { 'tokenHandler.pods.extraEnv': [{ name: 'KEY_RING', value: 'a' }] },
      'tokenHandler.pods.extraEnv: the chart or tokenHandler.env sets KEY_RING',
    ],
    [
      'a file for a variable that the chart sets',
      { 'forms.pods.extraEnv': [{ name: 'CODE_KEY_FILE', value: '/vault/key' }] },
      'forms.pods.extraEnv: the chart or forms.env sets CODE_KEY',
    ],
  ])('%s', async (_name, set, words) => {
    expect(await refusal({ files, set })).toContain(words);
  });

  test.each([
    ['a misspelt key', { 'forms.replica': 3 }, 'replica'],
    ['a misspelt key deep down', { 'networkPolicy.egress.redis.prots': [1] }, 'prots'],
    ['a misspelt setting', { 'tokenHandler.env.SESION_IDLE': 'PT5M' }, 'SESION_IDLE'],
    ['a setting that the chart sets', { 'forms.env.DATABASE_URL': 'postgres://a/b' }, 'DATABASE_URL'],
    ['a number as a setting', { 'forms.env.BODY_LIMIT': 1048576 }, 'BODY_LIMIT'],
    ['a short key', { 'forms.codeKey.value': 'short' }, 'codeKey'],
    ['an unknown preset', { 'ingress.preset': 'haproxy' }, 'preset'],
    ['a malformed name', { fullnameOverride: 'Form_Gate' }, 'fullnameOverride'],
    ['DNS policy None without servers', { 'pods.dnsPolicy': 'None' }, 'pods.dnsConfig.nameservers'],
    ['DNS servers that no network policy allows', { 'pods.dnsPolicy': 'Default' }, 'networkPolicy.dns.to'],
    [
      'further DNS servers that no network policy allows',
      { 'forms.pods.dnsConfig.nameservers': ['10.0.0.2'] },
      'networkPolicy.dns.to',
    ],
    ['a schedule with four fields', { 'reconciler.schedule': '0 3 * *' }, 'schedule'],
    ['a schedule with an hour that does not exist', { 'reconciler.schedule': '0 24 * * *' }, 'schedule'],
    ['a schedule with a misspelt day', { 'reconciler.schedule': '0 3 * * MOON' }, 'schedule'],
  ])('%s', async (_name, set, words) => {
    expect(await refusal({ files, set })).toContain(words);
  });
});
