// Tests the ConfigMaps with the dashboards, which the sidecar of Grafana's chart loads.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { dashboardFolder, dashboardNames } from '../monitoring/dashboard-files.ts';
import { chart, helms, type KubeObject, render, template } from './helm.ts';

const files = [join(chart, 'ci/minimal-values.yaml')];
type ConfigMap = KubeObject & { data: Record<string, string> };

describe.each(helms())('%s', (helm) => {
  const dashboardsOf = async (set: Record<string, unknown>) =>
    (await render(helm, { files, set: { 'dashboards.enabled': true, ...set } })).filter(
      ({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'dashboards',
    ) as ConfigMap[];

  test('by default there are none', async () => {
    expect(await dashboardsOf({ 'dashboards.enabled': false })).toEqual([]);
  });

  test('there is one for each dashboard, with the file unchanged and the label of the sidecar', async () => {
    const maps = await dashboardsOf({});
    expect(maps.map(({ metadata }) => metadata.name)).toEqual(
      dashboardNames().map((name) => `formgate-dashboard-${name.replace('.json', '')}`),
    );
    for (const [index, name] of dashboardNames().entries()) {
      const { kind, metadata, data } = maps[index] as ConfigMap;
      expect(kind).toBe('ConfigMap');
      expect(metadata.labels).toMatchObject({ grafana_dashboard: '1', 'app.kubernetes.io/instance': 'formgate' });
      expect(metadata.annotations).toBeUndefined();
      expect(data).toEqual({ [`formgate-${name}`]: readFileSync(join(dashboardFolder, name), 'utf8') });
    }
  });

  test('labels, annotations, the folder and the address of the runbooks can be set', async () => {
    const [map] = await dashboardsOf({
      'dashboards.labels': { team: 'forms' },
      'dashboards.annotations': { note: 'ours' },
      'dashboards.folder': 'Forms',
      'dashboards.folderAnnotation': 'k8s-sidecar-target-directory',
      'prometheusRule.runbookUrl': 'https://wiki.example.org/runbooks',
    });
    expect(map?.metadata.labels).toMatchObject({ team: 'forms' });
    expect(map?.metadata.annotations).toEqual({ note: 'ours', 'k8s-sidecar-target-directory': 'Forms' });
    const [text = ''] = Object.values(map?.data ?? {});
    expect(text).toContain('https://wiki.example.org/runbooks/');
    expect(text).not.toContain('github.com');
  });

  test('a misspelt value is rejected', async () => {
    const { code, stderr } = await template(helm, { files, set: { 'dashboards.label': { a: 'b' } } });
    expect(code).not.toBe(0);
    expect(stderr).toContain('dashboards');
  });
});
