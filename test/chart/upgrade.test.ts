// Tests `helm upgrade` of an installation of version 0.2.0 with its original values. This chart must accept these
// values, keep the objects that hold data, and change no immutable field. The chart of 0.2.0 comes from the Git
// history.
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { extractOldVersion } from '../upgrades/old-version.ts';
import { chart, helms, type KubeObject, render, template } from './helm.ts';

const folder = mkdtempSync(join(tmpdir(), 'formgate-old-chart-'));
const oldChart = join(folder, 'charts/formgate');
const [helm = ''] = helms();
let valueFiles: string[];
beforeAll(async () => {
  await extractOldVersion(folder, ['charts']);
  valueFiles = readdirSync(join(oldChart, 'ci')).map((name) => join(oldChart, 'ci', name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** For each kind of object, the fields that Kubernetes refuses to change. */
const immutable: Record<string, (spec: Record<string, unknown>) => unknown> = {
  Deployment: ({ selector }) => selector,
  StatefulSet: ({ selector, serviceName, volumeClaimTemplates }) => ({ selector, serviceName, volumeClaimTemplates }),
  PodDisruptionBudget: ({ selector }) => selector,
};

const nameOf = ({ kind, metadata }: KubeObject) => `${kind} ${metadata.name}`;

/**
 * Values that this version requires, unlike 0.2.0, of a release with an HTTPRoute or with an Ingress without a preset.
 */
const set = { 'networkPolicy.ingressController.podLabels': { 'app.kubernetes.io/name': 'traefik' } };

describe('values of version 0.2.0', () => {
  it('render once the NetworkPolicy names the Gateway or ingress controller', async () => {
    expect(valueFiles.length).toBeGreaterThan(8);
    for (const file of valueFiles) await render(helm, { files: [file], set });
  });

  it('without the defaults of this version (helm upgrade --reuse-values) are refused by a line that names a missing group', async () => {
    const copy = join(folder, 'reused');
    cpSync(chart, copy, { recursive: true });
    cpSync(join(oldChart, 'values.yaml'), join(copy, 'values.yaml'));
    for (const file of valueFiles) {
      const { code, stderr } = await template(helm, { files: [file], from: copy });
      expect(code).toBe(1);
      expect(stderr).toMatch(/missing propert(?:y|ies):? .*'?tracing'?|tracing is required/);
    }
  });

  it('keep every object that holds data or traffic, and the fields that cannot be changed', async () => {
    for (const file of valueFiles) {
      const before = await render(helm, { files: [file], from: oldChart });
      const after = new Map((await render(helm, { files: [file], set })).map((object) => [nameOf(object), object]));
      const lasting = before.filter(({ kind }) => lastingKinds.includes(kind));
      expect(lasting.length).toBeGreaterThan(3);
      for (const object of lasting) {
        const next = after.get(nameOf(object));
        expect(next, `${nameOf(object)} with ${file}`).toBeDefined();
        const fixed = immutable[object.kind];
        if (fixed) expect(fixed(specOf(next)), nameOf(object)).toEqual(fixed(specOf(object)));
      }
    }
  });
});

const lastingKinds = ['Deployment', 'StatefulSet', 'Service', 'CronJob', 'Ingress', 'HTTPRoute', 'Secret'];
const specOf = (object: KubeObject | undefined) => (object?.spec ?? {}) as Record<string, unknown>;
