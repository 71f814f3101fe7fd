// Tests that the chart's values, their descriptions and their schema agree, and cover every setting of the processes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseConfig } from '../../src/service/operations/config.ts';
import { isoDuration } from '../../src/service/operations/duration.ts';
import { oldNamesOf } from '../../src/service/operations/renamed-settings.ts';
import { durationTexts } from '../support/duration-texts.ts';
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

/** Yields the path of every number, switch and non-empty text in a tree of values. */
function* scalars(node: unknown, path: string[] = []): Generator<string[]> {
  if (isObject(node)) for (const [key, value] of Object.entries(node)) yield* scalars(value, [...path, key]);
  else if (['number', 'boolean', 'string'].includes(typeof node) && node !== '') yield path;
}

/** Returns whether the schema accepts null for a value, or the chart can do without the value. */
function isOptional(path: string[]): boolean {
  const [name = ''] = path.slice(-1);
  const child = (at: Json, key: string) => resolved((at.properties as Record<string, Json> | undefined)?.[key] ?? {});
  const node = path.reduce(child, schema as Json);
  // A map of texts has no known keys.
  if (Object.keys(node).length === 0) return true;
  // Without a key, the entry of a Secret has the name of the variable. A request or limit may be absent.
  const isKey = name === 'key' && path.at(-2) === 'existingSecret';
  return JSON.stringify(node).includes('"null"') || isKey || path.includes('resources');
}

test('values without which the chart would render wrong objects cannot be removed with null', () => {
  expect(isValid(values)).toBe(true);
  const needed = [...scalars(values)].filter((path) => !isOptional(path));
  expect(needed.length).toBeGreaterThan(80);
  const removable = needed.filter((path) => {
    const rest = structuredClone(values);
    // Helm removes a default value for which the operator gives null.
    const parent = path.slice(0, -1).reduce((at, key) => at[key], rest);
    delete parent[path.at(-1) ?? ''];
    return isValid(rest);
  });
  expect(removable.map((path) => path.join('.'))).toEqual([]);
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
    const unknown = Object.keys(setByChart).filter((variable) => !(variable in settings.shape));
    expect(unknown, name).toEqual([]);
  }
});

test('every value that determines a variable exists, and the templates use it for this variable', () => {
  const templates = read('templates/_environment.tpl');
  for (const [part, { setByChart }] of Object.entries(chartParts))
    for (const [variable, path] of Object.entries(setByChart)) {
      if (path === undefined) continue;
      const value = path.split('.').reduce((at: unknown, key) => (isObject(at) ? at[key] : undefined), values);
      expect(value, `${part}: ${variable}`).toBeDefined();
      const source = new RegExp(`\\b${variable}: \\{\\{ toJson \\(dict "path" "([^"]+)"`, 'g');
      const paths = [...templates.matchAll(source)].map(([, found]) => found);
      if (paths.length > 0) expect(paths, `${part}: ${variable}`).toContain(path);
    }
});

/** Returns the paths of the values that are invalid if `env` of a component contains this setting. */
function invalidPaths(component: string, name: string, text: string): string[] {
  const changed = structuredClone(values);
  changed[component].env = { [name]: text };
  isValid(changed);
  return [...new Set(isValid.errors?.map(({ instancePath }) => instancePath))];
}

test('settings that are durations accept durations only, and the error names the setting', () => {
  const durations = Object.entries(chartParts).flatMap(([component, { schema: settings, setByChart }]) =>
    Object.entries(settings.shape)
      .filter(([name]) => !(name in setByChart))
      .filter(([, field]) => /ISO 8601 duration/.test((field as z.ZodType).safeParse('10m').error?.message ?? ''))
      .flatMap(([name]) => [name, ...oldNamesOf(name)])
      .map((name) => [component, name] as const),
  );
  expect(durations.length).toBeGreaterThan(24);
  for (const [component, name] of durations) {
    for (const text of ['P15D', 'PT10M', 'PT1H30M', 'P2W', 'P1DT0.5S', ''])
      expect(invalidPaths(component, name, text), `${name}: ${text}`).toEqual([]);
    for (const text of ['10m', '600', 'P', 'PT', 'P1DT', 'P1M', 'PT1.5M', 'PT1S1M', ' PT1S', 'PT1S\n'])
      expect(invalidPaths(component, name, text), `${name}: ${text}`).toEqual([`/${component}/env/${name}`]);
  }
});

test('the schema accepts the durations that the processes accept, and no others', () => {
  const { allOf } = schema.definitions.duration as { allOf: { pattern: string }[] };
  // Match with RE2, as Helm does.
  const patterns = allOf.map(({ pattern }) => RE2JS.compile(pattern));
  const setting = z.object({ TIME: isoDuration('PT1S') });
  const isAccepted = (TIME: string) => {
    try {
      return parseConfig(setting, { TIME }).TIME >= 0;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(durationTexts, (text) => {
      expect(patterns.every((pattern) => pattern.matcher(text).find())).toBe(isAccepted(text));
      expect(invalidPaths('reconciler', 'LOCK_AFTER', text).length === 0).toBe(isAccepted(text));
    }),
    { numRuns: 1_000 },
  );
});

test('RE2, with which Helm matches, can compile every pattern of the schema', () => {
  const patterns = [...subschemas(schema, '')].flatMap(([, { pattern }]) =>
    typeof pattern === 'string' ? pattern : [],
  );
  expect(patterns.length).toBeGreaterThan(50);
  for (const pattern of patterns) expect(() => RE2JS.compile(pattern), pattern).not.toThrow();
});

test('the default values are valid', () => {
  isValid(values);
  expect(isValid.errors).toBeNull();
});

/**
 * Values that the chart copies into objects of Kubernetes and of the Prometheus Operator. The API server validates
 * them.
 */
const copied =
  /\/(?:extraEnv|extraVolumes|extraVolumeMounts|sidecars|relabelings|metricRelabelings|metrics|extraObjects)\/items/;

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
    // The key contains a space, so that it is invalid even where the chart accepts any label or variable name.
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
  // Ignore requests and limits, because values.yaml may leave out single resources, such as the CPU limit.
  expect(missing.filter((path) => !/\.resources\.(requests|limits)\./.test(path))).toEqual([]);
});

test('the schema requires every group of values, because `helm upgrade --reuse-values` leaves out those that are new', () => {
  const missing: string[] = [];
  const walk = (node: Json, value: Json, path: string) => {
    const properties = (node.properties ?? {}) as Record<string, Json>;
    for (const [key, child] of Object.entries(properties)) {
      const group = value[key];
      // Skip `resources`, which people may remove with null. Skip groups in shared definitions: a definition is not
      // newer than the group that refers to it, so the definition's groups need not be required.
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
