// The chart's values, their descriptions and their schema agree, and cover every setting of the processes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartParts, describedValues, withSettings, withValuesTable } from './chart-values.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, 'charts/formgate', path), 'utf8');

const schema = JSON.parse(read('values.schema.json'));
const values = parse(read('values.yaml'));
const isValid = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(schema);

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Yields a schema and all its subschemas, with their paths. */
function* subschemas(node: unknown, path: string): Generator<[string, Json]> {
  if (Array.isArray(node)) for (const [index, item] of node.entries()) yield* subschemas(item, `${path}/${index}`);
  if (!isObject(node)) return;
  yield [path, node];
  for (const [key, value] of Object.entries(node)) yield* subschemas(value, `${path}/${key}`);
}

/** Yields the path of every map in a tree of values. */
function* maps(node: unknown, path: string[] = []): Generator<string[]> {
  if (!isObject(node)) return;
  yield path;
  for (const [key, value] of Object.entries(node)) yield* maps(value, [...path, key]);
}

function resolved(node: Json): Json {
  return typeof node.$ref === 'string' ? resolved(schema.definitions[node.$ref.replace('#/definitions/', '')]) : node;
}

test('every value of the chart is described', () => {
  const described = describedValues(read('values.yaml'));
  expect(described.length).toBeGreaterThan(100);
  expect(described.filter(({ meaning }) => !meaning).map(({ path }) => path)).toEqual([]);
});

test('the chart’s README describes the values as values.yaml does (npm run docs updates it)', () => {
  const readme = read('README.md');
  expect(readme).toBe(withValuesTable(readme, describedValues(read('values.yaml'))));
});

test('env of each component accepts the settings of its process (npm run docs updates the schema)', () => {
  expect(read('values.schema.json')).toBe(withSettings(read('values.schema.json'), chartParts));
});

test('every variable that the chart sets is a setting of its process', () => {
  for (const [name, { schema: settings, setByChart }] of Object.entries(chartParts)) {
    const unknown = setByChart.filter((variable) => !(variable in settings.shape));
    expect(unknown, name).toEqual([]);
  }
});

test('the default values are valid', () => {
  isValid(values);
  expect(isValid.errors).toBeNull();
});

/** Objects of Kubernetes and of the Prometheus Operator that the chart copies. Their API servers check them. */
const copied = /\/(?:extraEnv|extraVolumes|extraVolumeMounts|sidecars|relabelings|metricRelabelings)\/items/;

test('every object in the schema restricts its keys and values', () => {
  const open = [...subschemas(schema, '')]
    .filter(([path, node]) => node.type === 'object' && path !== '/properties/global' && !copied.test(path))
    .filter(([, node]) => {
      const isMapOfTexts = isObject(node.propertyNames) && isObject(node.additionalProperties);
      return node.additionalProperties !== false && !isMapOfTexts;
    });
  expect(open.map(([path]) => path)).toEqual([]);
});

test('a misspelt key is rejected in every map of the values', () => {
  const places = [...maps(values)];
  expect(places.length).toBeGreaterThan(60);
  const accepted = places.filter((path) => {
    const changed = structuredClone(values);
    const place = path.reduce<Json>((node, key) => node[key] as Json, changed);
    // The key contains a space, so it is not a valid label or variable name either.
    place['misspelt key'] = 'x';
    return isValid(changed);
  });
  expect(accepted).toEqual([]);
});

test('every key of the schema has a default in values.yaml', () => {
  const missing: string[] = [];
  const walk = (node: Json, value: unknown, path: string) => {
    for (const [key, child] of Object.entries((node.properties ?? {}) as Record<string, Json>)) {
      if (path === '' && key === 'global') continue;
      if (!isObject(value) || !(key in value)) missing.push(`${path}${key}`);
      else if (isObject(value[key]) && Object.keys(value[key]).length > 0)
        walk(resolved(child), value[key], `${path}${key}.`);
    }
  };
  walk(schema, values, '');
  // Amounts of single resources may be missing from values.yaml.
  expect(missing.filter((path) => !/\.resources\.(requests|limits)\./.test(path))).toEqual([]);
});

test('the schema requires every group of values, because `helm upgrade --reuse-values` leaves out those that are new', () => {
  const missing: string[] = [];
  const walk = (node: Json, value: Json, path: string) => {
    const properties = (node.properties ?? {}) as Record<string, Json>;
    for (const [key, child] of Object.entries(properties)) {
      const group = value[key];
      // Groups of a definition are as old as the group itself; people may remove resources with null.
      if (!isObject(group) || key === 'resources' || !resolved(child).properties) continue;
      if (Object.keys(group).length === 0) continue;
      if (!(node.required as string[] | undefined)?.includes(key)) missing.push(`${path}${key}`);
      if (!('$ref' in child)) walk(child, group, `${path}${key}.`);
    }
  };
  walk(schema, values, '');
  expect(missing).toEqual([]);
});

test('the chart has the version of the package', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const chart = parse(read('Chart.yaml'));
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
});
